"""How fast it is here, next to others: `make bench` runs every script, each prints one table or two.

Every figure is taken in turns with the rival's in one run (`race.py`); the tables are kept in `out/`.
"""
