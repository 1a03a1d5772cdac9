"""Send the flights as records, in the order of their scheduled departure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd
from rich.progress import Progress

from ottla import Producer

FIELDS = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay"]
CLOSING_MS = 1_420_070_400_000
"""The first millisecond of 2015, long after the last flight. Brokers reject records from the future."""


class Record(NamedTuple):
    """The record of one flight."""

    key: bytes
    value: bytes
    timestamp: int
    """The scheduled departure in milliseconds since the epoch."""


def records(flights: pd.DataFrame) -> Iterator[Record]:
    """Yield each flight as JSON. The key is the aircraft, or the carrier if the aircraft is unknown."""
    timestamps = flights.scheduled.dt.tz_localize(None).astype("datetime64[ms]").astype("int64")
    columns = flights[FIELDS].astype({"dep_delay": "Int64"}).astype(object)  # a delay is whole minutes, or none
    columns = columns.where(columns.notna(), None)
    for row, timestamp in zip(columns.itertuples(index=False, name=None), timestamps, strict=True):
        flight: dict[str, Any] = dict(zip(FIELDS, row, strict=True))
        key = flight["tailnum"] or flight["carrier"]
        yield Record(key.encode(), json.dumps(flight).encode(), timestamp)


def replay(servers: str, flights: pd.DataFrame, progress: Progress) -> None:
    """Send all flights, then a closing record to each partition, and wait for all acknowledgements."""
    task = progress.add_task("flights → topic flights", total=len(flights))
    with Producer(bootstrap_servers=servers, linger_ms=20) as producer:
        for record in records(flights):
            producer.send("flights", record.value, key=record.key, timestamp=record.timestamp)
            progress.advance(task)
        close_input(producer)
        producer.flush()


def close_input(producer: Producer) -> None:
    """Advance the watermark of the job past the last flight.

    In append mode a day is emitted when the watermark has passed its end, and only input advances the watermark.
    Without a later record the last days would never be emitted. A record from 2015 ends them all. Each partition
    receives one, so the result does not depend on the partition that Spark reads last. The day of these records never
    ends.
    """
    for info in producer.partitions_for("flights"):
        producer.send("flights", b"{}", partition=info.partition, timestamp=CLOSING_MS)
