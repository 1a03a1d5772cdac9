"""Read the results of the job with a plain consumer and with `deltalake`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from ottla import Consumer, TopicPartition


def partitions(consumer: Consumer, topic: str) -> list[TopicPartition]:
    """Return all partitions of a topic."""
    return [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]


def count(servers: str, topic: str) -> int:
    """Return the number of records in the topic."""
    with Consumer(bootstrap_servers=servers) as consumer:
        tps = partitions(consumer, topic)
        return sum(consumer.end_offsets(tps).values()) - sum(consumer.beginning_offsets(tps).values())


def read_delays(servers: str) -> pd.DataFrame:
    """Return every record of the topic `delays` as a row, in the order read. Nothing is merged or dropped."""
    rows: list[dict[str, Any]] = []
    with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        tps = partitions(consumer, "delays")
        consumer.assign(tps)
        consumer.seek_to_beginning(*tps)
        ends = consumer.end_offsets(tps)
        while any(consumer.position(tp) < ends[tp] for tp in tps):
            rows += [json.loads(record.value) for record in consumer.poll(timeout=1.0) if record.value is not None]
    columns = ["day", "origin", "carrier", "airline", "flights", "cancelled", "mean_delay", "worst_delay"]
    return pd.DataFrame(rows, columns=columns)


def read_places(table: Path) -> pd.DataFrame:
    """Return the `partition` and `offset` in the topic `flights` of each row of the Delta table."""
    from deltalake import DeltaTable

    return DeltaTable(str(table)).to_pandas(columns=["partition", "offset"])
