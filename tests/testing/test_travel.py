"""Effects of passing time, without waiting. The clock is never turned back: each test starts at the end of the one before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.errors import ConfigError
from ottla.testing import Topic, assert_records
from ottla.testing.broker import TestedBroker
from tests.patience import eventually

DEADLINE = 60.0


@pytest.fixture
def admin(broker: TestedBroker) -> Iterator[Admin]:
    with Admin(broker.client_settings()) as admin:
        yield admin


def test_records_are_deleted_when_they_are_too_old(broker: TestedBroker, topic: Topic, producer: Producer) -> None:
    producer.send(topic, b"old").result(DEADLINE)
    broker.travel(days=8)
    with Consumer(broker.client_settings()) as consumer:
        place = TopicPartition(str(topic), 0)
        eventually(lambda: consumer.beginning_offsets([place])[place] == 1)
    assert_records(topic, [], timeout=DEADLINE)


def test_an_abandoned_transaction_is_aborted(broker: TestedBroker, topic: Topic) -> None:
    with Producer({**broker.client_settings(), "transactional.id": "slow"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"never committed").result(DEADLINE)
        broker.travel(minutes=2)
        with Producer(broker.client_settings()) as other:
            other.send(topic, b"behind it").result(DEADLINE)
        assert_records(topic, ["behind it"], timeout=DEADLINE)
        with pytest.raises(Exception, match=r"(?i)fenced|epoch|invalid"):
            producer.commit_transaction()


def test_a_silent_member_is_removed(broker: TestedBroker, topic: Topic, admin: Admin) -> None:
    settings = {**broker.client_settings(), "group.id": "silent", "auto.offset.reset": "earliest"}
    with Consumer(settings) as consumer:
        consumer.subscribe([str(topic)])
        eventually(lambda: consumer.poll(0.01) or consumer.assignment())
        with broker.faults.hang("Heartbeat"), broker.faults.hang("ConsumerGroupHeartbeat"):
            assert members_of(admin) == 1
            broker.travel(minutes=1)
            eventually(lambda: members_of(admin) == 0)


def members_of(admin: Admin) -> int:
    return len(admin.describe_consumer_groups(["silent"])["silent"].members)


def test_offsets_of_an_empty_group_expire(broker: TestedBroker, topic: Topic, admin: Admin) -> None:
    place = TopicPartition(str(topic), 0)
    settings = {**broker.client_settings(), "group.id": "gone", "enable.auto.commit": False}
    with Consumer(settings) as consumer:
        consumer.assign([place])
        consumer.commit({place: 0})
        assert consumer.committed([place])[place] is not None
        broker.travel(days=8)
        eventually(lambda: consumer.committed([place])[place] is None)


def test_an_invalid_time_span_is_rejected(broker: TestedBroker) -> None:
    with pytest.raises(ConfigError, match=r"travel\(hours=-1\) does not advance the clock"):
        broker.travel(hours=-1)
    with pytest.raises(
        ConfigError, match=r"travel\(years=1\): unknown word 'years'; there are timedelta's, such as hours=2: weeks, "
    ):
        broker.travel(years=1)
    with pytest.raises(ConfigError, match="unknown word 'hour'; did you mean 'hours'"):
        broker.travel(hour=1)
    with pytest.raises(ConfigError, match="expected a number, such as"):
        broker.travel(hours="2")  # type: ignore[arg-type]
