"""Flights classified as they come, exactly once: `python -m examples.process_flights`.

    flights.csv ──► topic flights ──ottla.process (two workers, one of them killed)──► topic departures ──► table, picture
                                          └── no flight ──► topic no-flights

Read `classify.py` and `worker.py` first: they are what a user writes. The rest feeds, kills, counts and shows.
"""
