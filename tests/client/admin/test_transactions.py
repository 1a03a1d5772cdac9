"""Transactions of librdkafka's producer, described and ended by the admin client."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import confluent_kafka as ck
import pytest

from ottla import Admin, TopicPartition
from ottla.client.admin import AbortTransactionSpec
from ottla.errors import ErrorCode, KafkaError
from ottla.model import LATEST

PATIENCE = 60.0


@pytest.fixture
def name() -> str:
    return f"tx-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def open_transaction(servers: str, name: str, topic: str) -> Iterator[ck.Producer]:
    """A producer with one record in an open transaction."""
    producer = ck.Producer({"bootstrap.servers": servers, "transactional.id": name, "transaction.timeout.ms": 60_000})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce(topic, b"v")
    producer.flush(PATIENCE)
    yield producer
    producer.purge()


def test_an_ongoing_transaction_is_listed_and_described(
    admin: Admin, open_transaction: ck.Producer, name: str, topic: str
) -> None:
    (listed,) = [each for each in admin.list_transactions() if each.transactional_id == name]
    found = admin.describe_transactions([name])[name]
    assert listed[2] == found.state == "Ongoing"
    assert found.producer_id == listed.producer_id
    assert found.transaction_timeout_ms == 60_000
    assert found.topic_partitions == (TopicPartition(topic, 0),)
    assert found.transaction_start_time_ms is not None
    assert name not in [each.transactional_id for each in admin.list_transactions(states=["Empty"])]
    assert [each.transactional_id for each in admin.list_transactions(producer_ids=[found.producer_id])] == [name]
    open_transaction.commit_transaction(PATIENCE)
    assert admin.describe_transactions([name])[name].topic_partitions == ()


def test_the_producers_and_the_open_transaction_of_a_partition_are_described(
    admin: Admin, open_transaction: ck.Producer, name: str, topic: str
) -> None:
    tp = TopicPartition(topic, 0)
    (found,) = admin.describe_producers([tp])[tp]
    assert found.producer_id == admin.describe_transactions([name])[name].producer_id
    assert (found.last_sequence, found.current_transaction_start_offset) == (0, 0)
    open_transaction.abort_transaction(PATIENCE)
    assert admin.describe_producers([tp])[tp][0].current_transaction_start_offset is None


def test_a_transaction_can_be_aborted_in_one_partition(admin: Admin, open_transaction: ck.Producer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    (found,) = admin.describe_producers([tp])[tp]
    admin.abort_transaction(AbortTransactionSpec(tp, found.producer_id, found.producer_epoch, 0))
    assert admin.describe_producers([tp])[tp][0].current_transaction_start_offset is None
    assert admin.list_offsets({tp: LATEST})[tp].offset == 2  # the record, and the marker


def test_missing_resources_are_named(admin: Admin, topic: str) -> None:
    with pytest.raises(KafkaError, match="there is no transactional id 'no-such'") as caught:
        admin.describe_transactions(["no-such"])
    assert caught.value.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    with pytest.raises(KafkaError, match=f"there is no partition {topic}-9"):
        admin.describe_producers([TopicPartition(topic, 9)])
    with pytest.raises(KafkaError, match="there is no broker 77"):
        admin.describe_producers([TopicPartition(topic, 0)], broker_id=77, timeout=0.2)
    with pytest.raises(KafkaError, match="knows no state 'Sleeping'"):
        admin.list_transactions(states=["Sleeping"])


def test_producers_of_a_transactional_id_are_fenced(
    admin: Admin, open_transaction: ck.Producer, name: str, topic: str
) -> None:
    before = admin.describe_transactions([name])[name]
    after = admin.fence_producers([name])[name]
    assert (after.producer_id, after.epoch > before.producer_epoch) == (before.producer_id, True)
    assert admin.describe_transactions([name])[name].topic_partitions == ()
    with pytest.raises(ck.KafkaException):
        open_transaction.commit_transaction(PATIENCE)


def test_an_open_transaction_of_a_transactional_id_is_terminated(
    admin: Admin, open_transaction: ck.Producer, name: str
) -> None:
    admin.force_terminate_transaction(name)
    assert admin.describe_transactions([name])[name].topic_partitions == ()
    with pytest.raises(ck.KafkaException):
        open_transaction.commit_transaction(PATIENCE)
