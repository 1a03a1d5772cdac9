"""Other people's clients, as they come from PyPI."""

from __future__ import annotations

from collections.abc import Callable

import confluent_kafka as ck
import kafka
import pytest

from ottla.broker.embedded import Broker

Result = list[tuple[bytes | None, bytes | None]]
RECORDS: Result = [(b"key-%d" % n, b"value-%d" % n) for n in range(1000)]


def produce_by_confluent(servers: str) -> None:
    producer = ck.Producer({"bootstrap.servers": servers, "enable.idempotence": True, "compression.type": "lz4"})
    for key, value in RECORDS:
        producer.produce("t", value, key, 0)
    assert producer.flush(20) == 0


def consume_by_confluent(servers: str) -> Result:
    consumer = ck.Consumer({"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([ck.TopicPartition("t", 0, 0)])
    found: Result = []
    while len(found) < len(RECORDS):
        messages = consumer.consume(1000, 20)
        assert messages
        found += [(message.key(), message.value()) for message in messages]
    consumer.commit(offsets=[ck.TopicPartition("t", 0, len(found))], asynchronous=False)
    assert consumer.committed([ck.TopicPartition("t", 0)], 20)[0].offset == len(RECORDS)
    consumer.close()
    return found


def produce_by_kafka_python(servers: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=servers, compression_type="gzip")
    for key, value in RECORDS:
        producer.send("t", value, key, partition=0)
    producer.flush(20)
    producer.close()


def consume_by_kafka_python(servers: str) -> Result:
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers, group_id="g", enable_auto_commit=False)
    partition = kafka.TopicPartition("t", 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    found: Result = []
    while len(found) < len(RECORDS):
        records = consumer.poll(20_000)
        assert records
        found += [(record.key, record.value) for record in records[partition]]
    consumer.close()
    return found


@pytest.mark.parametrize("produce", [produce_by_confluent, produce_by_kafka_python])
@pytest.mark.parametrize("consume", [consume_by_confluent, consume_by_kafka_python])
def test_what_one_client_sends_the_other_reads(
    broker: Broker, produce: Callable[[str], None], consume: Callable[[str], Result]
) -> None:
    produce(broker.bootstrap_servers)
    assert consume(broker.bootstrap_servers) == RECORDS


@pytest.mark.behaviour("B8")
def test_topics_are_made_listed_and_deleted_by_an_admin_client(broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for made in admin.create_topics([NewTopic("t", 3, 1, config={"retention.ms": "1000"})]).values():
        made.result(20)
    assert len(admin.list_topics(timeout=20).topics["t"].partitions) == 3
    for deleted in admin.delete_topics(["t"]).values():
        deleted.result(20)
    assert "t" not in admin.list_topics(timeout=20).topics
