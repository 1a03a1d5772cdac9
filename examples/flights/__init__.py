"""A year of flights through the broker and Spark: `python -m examples.flights`.

    flights.csv ──replay──► topic flights ──flights.yaml (Spark)──► topic delays ──► table, picture, check
                                                       └──────────► Delta table of flights ──► check

Read `flights.yaml` first: it is what a user writes, and `ottla pipeline run` runs it. The rest replays, kills Spark and the
broker in the middle, shows and checks.
"""
