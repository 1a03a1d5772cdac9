"""A transaction that one producer fills and another ends, in both versions of the protocol."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator

import pytest

from ottla import Producer, TopicPartition
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.producer.open_transaction import OpenTransaction
from ottla.client.producer.transaction_sender import TransactionSender
from ottla.errors import ApplicationRecoverableError, IllegalStateError, ProducerFencedError
from tests.client.conftest import NewTopicName
from tests.client.producer.test_transactions import committed

pytestmark = pytest.mark.behaviour("P7")


@pytest.fixture(params=["version 1", "version 2"], autouse=True)
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "version 1":
        monkeypatch.setattr(TransactionSender, "_is_v2", lambda *_: False)


@pytest.fixture
def name() -> str:
    return f"handed-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def successor(servers: str, name: str) -> Iterator[Producer]:
    with Producer(bootstrap_servers=servers, transactional_id=name) as producer:
        yield producer


def filled(servers: str, name: str, topic: str) -> OpenTransaction:
    """Return the open transaction of a producer that is closed now."""
    with Producer(bootstrap_servers=servers, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"left open")
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, ConsumerGroupMetadata(name))
        producer.flush()
        given: OpenTransaction = pickle.loads(pickle.dumps(producer.hand_over_transaction()))
        return given


def test_a_handed_over_transaction_is_visible_after_the_other_producer_commits(
    servers: str, new_topic: NewTopicName, name: str, successor: Producer
) -> None:
    topic = new_topic()
    given = filled(servers, name, topic)
    assert committed(servers, topic) == []
    successor.take_over_transaction(given)
    successor.commit_transaction()
    assert committed(servers, topic) == [b"left open"]


def test_a_handed_over_transaction_is_discarded_after_the_other_producer_aborts(
    servers: str, new_topic: NewTopicName, name: str, successor: Producer
) -> None:
    topic = new_topic()
    successor.take_over_transaction(filled(servers, name, topic))
    successor.abort_transaction()
    assert committed(servers, topic) == []


def test_init_transactions_by_another_producer_aborts_the_transaction_and_fences_the_new_owner(
    servers: str, new_topic: NewTopicName, name: str, successor: Producer
) -> None:
    topic = new_topic()
    given = filled(servers, name, topic)
    with Producer(bootstrap_servers=servers, transactional_id=name) as third:
        third.init_transactions()
        successor.take_over_transaction(given)
        with pytest.raises(ProducerFencedError):
            successor.commit_transaction()
    assert committed(servers, topic) == []


def test_the_producer_that_gave_its_transaction_away_can_only_be_closed(
    servers: str, new_topic: NewTopicName, name: str
) -> None:
    with Producer(bootstrap_servers=servers, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        with pytest.raises(IllegalStateError, match="no broker knows of the transaction yet"):
            producer.hand_over_transaction()
        producer.send(new_topic(), b"v").result(10)
        producer.hand_over_transaction()
        with pytest.raises(ApplicationRecoverableError, match="was passed to another"):
            producer.commit_transaction()


def test_only_a_producer_with_the_same_transactional_id_can_take_over(servers: str, successor: Producer) -> None:
    with pytest.raises(IllegalStateError, match="use the same id"):
        successor.take_over_transaction(OpenTransaction("another", 1, 0, True))


def test_a_producer_closes_at_once_in_an_empty_transaction(servers: str, name: str) -> None:
    producer = Producer(bootstrap_servers=servers, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.close(60)
    assert not producer._core.sender._forced
