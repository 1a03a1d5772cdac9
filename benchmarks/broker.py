"""Our broker under confluent-kafka, next to Apache Kafka where its jars are (`make interop` fetches them).

Producing is acks=1, as fast as the client can; consuming is one assigned partition from its start. The client is the same on both
sides, so where it was the limit, the processor time of the servers is the figure to compare.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from itertools import count

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.brokers import Running, apache_kafka, ottla_broker
from benchmarks.race import Contender, race

SIZES = {100: 500_000, 1024: 150_000}
"""Bytes of a value, and how many records of it are one turn."""
CHUNK = 10_000
serial = count()


def produce(server: Running, size: int, records: int) -> int:
    """Send `records` values of `size` bytes to a new topic and wait until all are acknowledged."""
    return fill(server, new_topic(server), size, records)


def fill(server: Running, topic: str, size: int, records: int) -> int:
    """The same to a given topic."""
    producer = ck.Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "acks": "1",
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 0,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    chunk = [{"value": bytes(size)}] * CHUNK
    for _ in range(records // CHUNK):
        producer.produce_batch(topic, chunk, 0)
        producer.poll(0)
    left = producer.flush(120)
    assert left == 0, f"{left} records were not acknowledged"
    return records


def consume(server: Running, topic: str, records: int) -> int:
    """Read `records` records of `topic` from its start."""
    consumer = ck.Consumer({"bootstrap.servers": server.bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    got = 0
    while got < records:
        batch = consumer.consume(CHUNK, timeout=30)
        assert batch, f"nothing came for 30 seconds after {got} records"
        got += len(batch)
    consumer.close()
    return got


def new_topic(server: Running) -> str:
    """A topic of one partition that nobody has used."""
    name = f"bench-{next(serial)}"
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for done in admin.create_topics([NewTopic(name, 1, 1)]).values():
        done.result(30)
    return name


def warm_up(server: Running) -> None:
    """2 GB in and out: a JVM is not itself before."""
    topic = new_topic(server)
    fill(server, topic, 1024, 2_000_000)
    consume(server, topic, 2_000_000)


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
