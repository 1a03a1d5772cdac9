"""The lag of a query, worked out of its progress."""

from __future__ import annotations

import json

from ottla.spark.ranges.progress import lag


def test_the_lag_is_over_the_partitions() -> None:
    end = {"t": {"0": 5, "1": 7}, "#plan": [4, None], "#ids": {"t": "x"}}
    latest = {"t": {"0": 9, "1": 7, "2": 3}}
    source = {"endOffset": json.dumps(end), "latestOffset": json.dumps(latest)}
    assert lag({"sources": [source, {"endOffset": 7, "latestOffset": 9}, {"endOffset": None}]}) == [
        {"minOffsetsBehindLatest": 0, "maxOffsetsBehindLatest": 4, "avgOffsetsBehindLatest": 7 / 3},
        {},
        {},
    ]
