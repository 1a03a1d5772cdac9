"""Measure TLS: 1 KiB records through the broker with librdkafka, and our consumer next to confluent-kafka's.

Ours runs next to Apache Kafka: MB/s, and processor time per gigabyte. Our consumer reads columns over TLS, and
confluent-kafka's reads records, on our broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow.compute as pc

from benchmarks import confluent, librdkafka
from benchmarks.broker import aimed_at, consumed, produced, warm_up
from benchmarks.brokers import Running
from benchmarks.confluent import new_topic
from benchmarks.duel import Line, duel, report
from benchmarks.race import Contender, race
from benchmarks.secured import both
from ottla import Consumer, TopicPartition

SIZE, RECORDS = 1024, 500_000
AIMS = ("≥ 1.2", "≤ 0.5")


def lines(servers: Sequence[Running]) -> list[tuple[Line, str]]:
    """Measure writing and reading."""
    filled = {server: new_topic(server) for server in servers}
    for server, topic in filled.items():
        librdkafka.fill(server, topic, SIZE, RECORDS)
    into = duel(servers, partial(produced, size=SIZE, records=RECORDS))
    out = duel(servers, partial(consumed, topics=filled, size=SIZE, records=RECORDS))
    return aimed_at("produce 1 KiB over TLS", into, AIMS) + aimed_at("consume 1 KiB over TLS", out, AIMS)


def consume_columns(server: Running, topic: str, records: int) -> int:
    """Ours, as Arrow columns."""
    got = seen = 0
    settings = {"bootstrap.servers": server.bootstrap, **dict(server.settings), "auto.offset.reset": "earliest"}
    settings["security.protocol"] = settings["security.protocol"].upper()
    with Consumer(settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        while got < records:
            table = consumer.poll_arrow(timeout=30)
            seen += pc.sum(pc.binary_length(table.column("value"))).as_py()
            got += table.num_rows
    assert seen
    return got


def main() -> None:
    with both() as sides:
        servers = [side.by_tls for side in sides]
        for server in servers:
            warm_up(server)
        report("over TLS through a broker", servers, lines(servers))
        server, *_ = servers
        for size, records in ((100, 1_000_000), (SIZE, RECORDS)):
            topic = new_topic(server)
            librdkafka.fill(server, topic, size, records)
            contenders = [
                Contender("ottla, poll_arrow()", partial(consume_columns, server, topic, records), server.process),
                Contender("confluent-kafka", partial(confluent.consume, server, topic, records), server.process),
            ]
            race(f"consume {size} bytes over TLS", contenders, rounds=3)


if __name__ == "__main__":
    main()
