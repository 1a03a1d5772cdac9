"""Benchmarks of Ottla next to other brokers and clients: `make bench` runs every script, and each prints one or two
tables.

Each figure is measured in turns with the rival's in one run (`race.py`). The tables are written to `out/`.
"""
