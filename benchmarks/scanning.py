"""Measure `ottla.scan` next to confluent-kafka whose records are put into a Polars frame, on the same topic in turns.

`python -m benchmarks.scanning`. Three queries: the values of the whole topic, all columns of it, and the records of the last
second, for which a filter by time moves the first fetch. The rival reads by offsets in the first two, and looks the time
up itself in the third: the comparison is of reading, not of knowing where.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any

import confluent_kafka as ck
import polars as pl

import ottla
from benchmarks.race import Contender, race
from ottla import Admin, Broker, NewTopic, Producer

TOPIC, PARTITIONS, RECORDS, VALUE_BYTES = "scanned", 4, 1_000_000, 100
FIRST_MS = 1_767_225_600_000
PER_SECOND = 10_000
"""Records of each second of timestamps."""
LAST = datetime.fromtimestamp((FIRST_MS + 1000 * (RECORDS // PER_SECOND - 1)) / 1000, UTC)


def fill(servers: str) -> None:
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    value = bytes(VALUE_BYTES)
    with Producer(bootstrap_servers=servers, linger_ms=50) as producer:
        for number in range(RECORDS):
            at = FIRST_MS + number * 1000 // PER_SECOND
            producer.send(TOPIC, value, key=b"%d" % number, partition=number % PARTITIONS, timestamp=at)


def scan_values(servers: str) -> int:
    return ottla.scan(TOPIC, bootstrap_servers=servers).select("value").collect().height


def scan_all(servers: str) -> int:
    return ottla.scan(TOPIC, bootstrap_servers=servers).collect().height


def scan_last(servers: str) -> int:
    return ottla.scan(TOPIC, bootstrap_servers=servers).filter(pl.col("timestamp") >= LAST).collect().height


def consume(servers: str, since: datetime | None, columns: dict[str, Any]) -> int:
    consumer = ck.Consumer({"bootstrap.servers": servers, "group.id": "scanning", "enable.auto.commit": False})
    whole = [ck.TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)]
    starts = whole
    if since is not None:
        moment = int(since.timestamp() * 1000)
        starts = consumer.offsets_for_times([ck.TopicPartition(TOPIC, number, moment) for number in range(PARTITIONS)])
    ends = sum(consumer.get_watermark_offsets(tp)[1] for tp in whole)
    left = ends - sum(tp.offset for tp in starts)
    consumer.assign(starts)
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    while left > 0:
        messages = consumer.consume(10_000, 1)
        left -= len(messages)
        for name, take in columns.items():
            rows[name] += [take(message) for message in messages]
    consumer.close()
    return pl.DataFrame(rows).height


VALUES = {"value": ck.Message.value}
ALL = {
    **VALUES,
    "key": ck.Message.key,
    "topic": ck.Message.topic,
    "partition": ck.Message.partition,
    "offset": ck.Message.offset,
    "timestamp": lambda message: message.timestamp()[1],
}


def main() -> None:
    with Broker(process=True, log_retention_ms=-1) as broker:
        servers = broker.bootstrap_servers
        fill(servers)
        for title, ours, since, columns in (
            ("the values of a topic", scan_values, None, VALUES),
            ("all columns of a topic", scan_all, None, ALL),
            ("the last hundredth of a topic by time", scan_last, LAST, ALL),
        ):
            expected = ours(servers)
            assert expected == consume(servers, since, columns), title
            race(
                f"{title}, {expected:,} records of {VALUE_BYTES} bytes",
                [
                    Contender("ottla.scan", partial(ours, servers), broker.pid),
                    Contender(
                        "confluent-kafka and polars.DataFrame", partial(consume, servers, since, columns), broker.pid
                    ),
                ],
                rounds=3,
            )


if __name__ == "__main__":
    main()
