"""Our broker under confluent-kafka, next to Apache Kafka where its jars are (`make interop` fetches them).

Producing is acks=1, as fast as the client can; consuming is one assigned partition from its start. The client is the same on both
sides, so where it was the limit, the processor time of the servers is the figure to compare.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from benchmarks.brokers import Running, apache_kafka, ottla_broker
from benchmarks.confluent import consume, fill, new_topic
from benchmarks.race import Contender, race

SIZES = {100: 500_000, 1024: 150_000}
"""Bytes of a value, and how many records of it are one turn."""


def produce(server: Running, size: int, records: int) -> int:
    """Fill a new topic."""
    return fill(server, new_topic(server), size, records)


def compare(servers: list[Running], size: int, records: int) -> None:
    """Both directions at one size."""
    race(
        f"confluent-kafka produces {size} bytes",
        [Contender(s.name, partial(produce, s, size, records), s.process) for s in servers],
    )
    filled = {server: new_topic(server) for server in servers}
    for server, topic in filled.items():
        fill(server, topic, size, records)
    race(
        f"confluent-kafka consumes {size} bytes",
        [Contender(s.name, partial(consume, s, topic, records), s.process) for s, topic in filled.items()],
    )


def warm_up(server: Running) -> None:
    """2 GB in and out: a JVM is not itself before."""
    topic = new_topic(server)
    fill(server, topic, 1024, 2_000_000)
    consume(server, topic, 2_000_000)


def main() -> None:
    with ExitStack() as running:
        servers = [running.enter_context(ottla_broker())]
        kafka = running.enter_context(apache_kafka())
        if kafka is not None:
            warm_up(kafka)
            servers.append(kafka)
        for size, records in SIZES.items():
            compare(servers, size, records)


if __name__ == "__main__":
    main()
