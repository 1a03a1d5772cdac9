"""A year of flights through the broker and Spark: `python -m examples.flights`.

    flights.csv ──replay──► topic flights ──job (Spark)──► topic delays ──► table, picture, check
                                                └────────► Delta table of flights ──► check

Read `job.py` first: it is what a Spark user writes. The rest replays, kills Spark and the broker in the middle, shows
and checks.
"""
