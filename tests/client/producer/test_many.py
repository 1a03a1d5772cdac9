"""Many plain records in one call."""

from __future__ import annotations

from typing import Any

import pytest

from ottla import Producer, TopicPartition
from ottla.client.producer import plain_rows
from ottla.errors import RecordTooLargeError, SerializationError, TransactionAbortableError
from tests.client.conftest import NewTopicName
from tests.client.producer.test_table import read


def keyed(servers: str, topic: str, count: int, partitions: int) -> list[tuple[int, bytes | None, bytes | None]]:
    """Partition, key and value of each record."""
    rows = read(servers, topic, count, partitions)
    return list(zip(*(rows.column(name).to_pylist() for name in ("partition", "key", "value")), strict=True))


def test_many_values_arrive_in_their_order_with_a_receipt_for_all(servers: str, topic: str) -> None:
    values = [b"%d" % number for number in range(1000)]
    with Producer(bootstrap_servers=servers) as producer:
        receipt = producer.send_many(topic, values)
        assert receipt.result(20) == {TopicPartition(topic, 0): [range(1000)]}
    assert read(servers, topic, 1000).column("value").to_pylist() == values


@pytest.mark.parametrize("pieces", [plain_rows.PIECE_BYTES, 8])
def test_keys_sent_in_bulk_get_the_same_partitions_as_single_sends(
    servers: str, new_topic: NewTopicName, monkeypatch: pytest.MonkeyPatch, pieces: int
) -> None:
    monkeypatch.setattr(plain_rows, "PIECE_BYTES", pieces)
    together, alone = new_topic(3), new_topic(3)
    keys, values = [b"%d" % (n % 7) for n in range(40)], [None if n % 5 == 0 else b"v%d" % n for n in range(40)]
    with Producer(bootstrap_servers=servers) as producer:
        producer.send_many(together, values, keys=keys)
        for key, value in zip(keys, values, strict=True):
            producer.send(alone, value, key=key)
    assert sorted_by_partition(keyed(servers, together, 40, 3)) == sorted_by_partition(keyed(servers, alone, 40, 3))


def sorted_by_partition(rows: list[tuple[int, Any, Any]]) -> list[tuple[int, Any, Any]]:
    """Sort rows by partition, and keep the order within each partition."""
    return sorted(rows, key=lambda row: row[0])


def test_records_without_a_key_use_any_partition_and_all_arrive(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(3)
    with Producer(bootstrap_servers=servers) as producer:
        producer.send_many(topic, [b"a", b"b", b"c"], keys=[None, b"k", None])
    found = {(key, value) for _, key, value in keyed(servers, topic, 3, 3)}
    assert found == {(None, b"a"), (b"k", b"b"), (None, b"c")}


def test_custom_partitioners_and_serializers_are_called(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(3)

    def last(topic: str, key: bytes | None, value: bytes | None, partitions: int) -> int:
        return partitions - 1

    with Producer(bootstrap_servers=servers, partitioner_class=last, value_serializer=str.encode) as producer:
        producer.send_many(topic, (text for text in "ab"))
    assert keyed(servers, topic, 2, 3) == [(2, None, b"a"), (2, None, b"b")]


def test_a_partitioner_that_returns_a_missing_partition_is_rejected(servers: str, new_topic: NewTopicName) -> None:
    with (
        Producer(bootstrap_servers=servers, partitioner_class=lambda *_: 7) as producer,
        pytest.raises(ValueError, match="chose partition 7"),
    ):
        producer.send_many(new_topic(3), [b"v"])


def test_many_and_single_records_keep_their_order(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, linger_ms=50) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % (2 * number))
            producer.send_many(topic, [b"%d" % (2 * number + 1)])
    assert read(servers, topic, 20).column("value").to_pylist() == [b"%d" % number for number in range(20)]


def test_values_that_are_no_bytes_are_rejected_before_any_is_queued(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        with pytest.raises(SerializationError, match="the value is int, not bytes"):
            producer.send_many(topic, [b"v", 7])
        with pytest.raises(ValueError, match="2 values and 1 keys"):
            producer.send_many(topic, [b"v", b"w"], keys=[b"k"])
        assert producer.send_many(topic, []).result(5) == {}


def test_an_oversized_value_makes_its_transaction_abortable(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        receipt = producer.send_many(topic, [bytes(2_000_000)])
        with pytest.raises(RecordTooLargeError):
            receipt.result(5)
        with pytest.raises(TransactionAbortableError):
            producer.commit_transaction()
        producer.abort_transaction()
