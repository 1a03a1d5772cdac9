"""Compare our producer and consumer, sync and async, with confluent-kafka and kafka-python on the same broker (ours).

Ratios are relative to confluent-kafka. Every consumer reads each value that it receives; columns are read as columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import kafka
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import confluent
from benchmarks.brokers import Running, ottla_broker
from benchmarks.confluent import new_topic
from benchmarks.race import Contender, race
from ottla import Consumer, Producer, TopicPartition

SIZES = {100: 400_000, 1024: 100_000}
"""The size of a value in bytes, and the number of records sent in one turn."""
READ = 5
"""The factor for records in a turn of reading. Reading is faster, and the cost of connecting should be small."""
SLOW = 10
"""The divisor for records in a turn of kafka-python."""
CHUNK = 10_000


def produce_records(server: Running, size: int, records: int) -> int:
    """Ours, record by record."""
    topic, value = new_topic(server), bytes(size)
    with Producer(bootstrap_servers=server.bootstrap, acks=1, linger_ms=5, batch_size=500_000) as producer:
        for _ in range(records):
            producer.send(topic, value)
        producer.flush(120)
    return records


def produce_table(server: Running, size: int, records: int) -> int:
    """Ours, one table at a time."""
    return fill(server, new_topic(server), size, records)


def fill(server: Running, topic: str, size: int, records: int) -> int:
    """Fill a given topic, one table at a time."""
    table = pa.table({"value": [bytes(size)] * CHUNK})
    with Producer(bootstrap_servers=server.bootstrap, acks=1, linger_ms=5, batch_size=500_000) as producer:
        for _ in range(records // CHUNK):
            producer.send_table(topic, table)
        producer.flush(120)
    return records


def produce_confluent(server: Running, size: int, records: int) -> int:
    """confluent-kafka, record by record."""
    return confluent.send(server, new_topic(server), size, records)


def produce_confluent_batch(server: Running, size: int, records: int) -> int:
    """confluent-kafka by `produce_batch()`."""
    return confluent.fill(server, new_topic(server), size, records)


def produce_kafka_python(server: Running, size: int, records: int) -> int:
    """kafka-python, record by record, fewer of them."""
    topic, value = new_topic(server), bytes(size)
    settings = {"acks": 1, "linger_ms": 5, "batch_size": 500_000}
    with closing(kafka.KafkaProducer(bootstrap_servers=server.bootstrap, **settings)) as producer:
        for _ in range(records // SLOW):
            producer.send(topic, value)
        producer.flush(120)
    return records // SLOW


def assigned(server: Running, topic: str, **settings: Any) -> Consumer:
    """Return a consumer of ours at the start of the topic."""
    consumer = Consumer(bootstrap_servers=server.bootstrap, auto_offset_reset="earliest", **settings)
    consumer.assign([TopicPartition(topic, 0)])
    return consumer


def consume_records(server: Running, topic: str, records: int) -> int:
    """Ours, record by record."""
    got = seen = 0
    with assigned(server, topic, max_poll_records=CHUNK) as consumer:
        while got < records:
            for record in consumer.poll(timeout=30):
                seen += len(record.value or b"")
                got += 1
    assert seen
    return got


def consume_columns(server: Running, topic: str, records: int) -> int:
    """Ours, as Arrow columns."""
    got = seen = 0
    with assigned(server, topic) as consumer:
        while got < records:
            table = consumer.poll_arrow(timeout=30)
            seen += pc.sum(pc.binary_length(table.column("value"))).as_py()
            got += table.num_rows
    assert seen
    return got


def consume_kafka_python(server: Running, topic: str, records: int) -> int:
    """kafka-python by `poll()`, fewer of them."""
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = kafka.KafkaConsumer(bootstrap_servers=server.bootstrap, group_id=None, **settings)
    consumer.assign([kafka.TopicPartition(topic, 0)])
    got = 0
    while got < records // SLOW:
        for batch in consumer.poll(timeout_ms=30_000, max_records=CHUNK).values():
            got += sum(len(message.value) > 0 for message in batch)
    consumer.close()
    return got


def producers(server: Running, size: int, records: int) -> Iterator[Contender]:
    """Yield the contenders that produce."""
    yield Contender("ottla, send_table()", partial(produce_table, server, size, records), server.process)
    yield Contender("ottla, send()", partial(produce_records, server, size, records), server.process)
    yield Contender("confluent-kafka, batches", partial(produce_confluent_batch, server, size, records), server.process)
    yield Contender("kafka-python", partial(produce_kafka_python, server, size, records), server.process)
    yield Contender("confluent-kafka", partial(produce_confluent, server, size, records), server.process)


def consumers(server: Running, topic: str, records: int) -> Iterator[Contender]:
    """Yield the contenders that consume."""
    yield Contender("ottla, poll_arrow()", partial(consume_columns, server, topic, records), server.process)
    yield Contender("ottla, poll()", partial(consume_records, server, topic, records), server.process)
    yield Contender("kafka-python", partial(consume_kafka_python, server, topic, records), server.process)
    yield Contender("confluent-kafka", partial(confluent.consume, server, topic, records), server.process)


def main() -> None:
    with ottla_broker() as server:
        for size, records in SIZES.items():
            race(f"produce {size} bytes", list(producers(server, size, records)))
            topic = new_topic(server)
            fill(server, topic, size, READ * records)
            race(f"consume {size} bytes", list(consumers(server, topic, READ * records)))


if __name__ == "__main__":
    main()
