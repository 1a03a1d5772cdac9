"""Other client libraries, from PyPI."""

from __future__ import annotations

import errno
import gc
import socket
import threading
import warnings
from collections.abc import Callable

import confluent_kafka as ck
import kafka
import kafka.net.inet
import pytest

from ottla.broker.embedding.embedded_broker import Broker
from tests.broker.kafka_python_sockets import kafka_python_sockets_closed
from tests.patience import PATIENCE

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
def test_records_of_one_client_library_are_read_by_the_others(
    broker: Broker, produce: Callable[[str], None], consume: Callable[[str], Result]
) -> None:
    produce(broker.bootstrap_servers)
    assert consume(broker.bootstrap_servers) == RECORDS


def test_a_kafka_python_client_that_is_closed_while_it_connects_leaves_no_socket_open(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with kafka_python_sockets_closed():
            close_while_connecting(broker.bootstrap_servers, monkeypatch)
        gc.collect()
    assert [str(each.message) for each in found if each.category is ResourceWarning] == []


def close_while_connecting(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Close a consumer of kafka-python when its second connection is open and the consumer does not know this yet."""
    consumer = kafka.KafkaConsumer(bootstrap_servers=servers)
    consumer.topics()
    manager, connecting = consumer._manager, threading.Event()

    def connect_without_end(net: object, sock: socket.socket, address: tuple[str, int]) -> int:
        sock.connect_ex(address)
        connecting.set()
        return errno.EINPROGRESS

    def reconnect() -> None:
        manager.close()
        manager.closed = False
        manager.get_connection(1)

    monkeypatch.setattr(kafka.net.inet.KafkaNetSocket, "connect_ex", connect_without_end)
    consumer._net.call_soon_threadsafe(reconnect)
    assert connecting.wait(PATIENCE)
    consumer.close()


@pytest.mark.behaviour("B8")
def test_topics_are_created_listed_and_deleted_by_an_admin_client(broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for made in admin.create_topics([NewTopic("t", 3, 1, config={"retention.ms": "1000"})]).values():
        made.result(20)
    assert len(admin.list_topics(timeout=20).topics["t"].partitions) == 3
    for deleted in admin.delete_topics(["t"]).values():
        deleted.result(20)
    assert "t" not in admin.list_topics(timeout=20).topics
