"""Loops over a consumer, positions with epochs, their commits, and records of transactions."""

from __future__ import annotations

import pytest

from ottla import Broker, Consumer, Producer, TopicPartition
from ottla.model import OffsetAndMetadata
from tests.client.consumer.conftest import Members, fill_topic, poll_count


def offsets(records: list[object]) -> list[int]:
    return [record.offset for record in records]  # type: ignore[attr-defined]


def read_up_to(consumer: Consumer, last: int) -> list[int]:
    """The offsets that a loop has had when it is left after `last`."""
    seen = []
    for record in consumer:
        seen.append(record.offset)
        if record.offset == last:
            break
    return seen


@pytest.mark.behaviour("C19")
def test_a_loop_can_be_left_and_resumed(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 10, partitions=1)
    consumer = member(enable_auto_commit=False)
    consumer.assign([TopicPartition(shared_topic, 0)])
    assert read_up_to(consumer, 3) == [0, 1, 2, 3]
    assert read_up_to(consumer, 6) == [4, 5, 6]
    assert offsets(poll_count(consumer, 3)) == [7, 8, 9]


@pytest.mark.behaviour("C6")
def test_a_loop_commits_what_it_has_had(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 10, partitions=1)
    tp = TopicPartition(shared_topic, 0)
    consumer = member(enable_auto_commit=False)
    consumer.assign([tp])
    read_up_to(consumer, 3)
    consumer.commit()
    assert consumer.committed([tp]) == {tp: OffsetAndMetadata(4, leader_epoch=0)}
    assert consumer.position(tp) == 4
    assert consumer.current_lag(tp) == 6


@pytest.mark.behaviour("C19")
def test_a_seek_in_a_loop_moves_the_loop(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 5, partitions=1)
    tp = TopicPartition(shared_topic, 0)
    consumer = member()
    consumer.assign([tp])
    seen = []
    for record in consumer:
        seen.append(record.offset)
        if seen == [0, 1]:
            consumer.seek(tp, 3)
        if record.offset == 4:
            break
    assert seen == [0, 1, 3, 4]


@pytest.mark.behaviour("C19")
def test_a_committed_offset_can_be_sought_with_its_epoch(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 5, partitions=1)
    tp = TopicPartition(shared_topic, 0)
    consumer = member(enable_auto_commit=False)
    consumer.assign([tp])
    consumer.seek(tp, OffsetAndMetadata(2, "here", 0))
    assert offsets(poll_count(consumer, 3)) == [2, 3, 4]
    with pytest.raises(ValueError, match="offset = -1: must not be negative"):
        consumer.seek(tp, OffsetAndMetadata(-1))


@pytest.mark.behaviour("C1")
def test_a_listener_of_coroutines_is_refused(member: Members, shared_topic: str) -> None:
    async def assigned(_: object) -> None: ...

    with pytest.raises(TypeError, match=r"only ottla\.aio\.Consumer can await it"):
        member().subscribe([shared_topic], on_assigned=assigned)


def test_buffered_bytes_are_reported_with_their_limit(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 10, partitions=1)
    consumer = member(max_poll_records=1, fetch_max_bytes=100_000)
    consumer.assign([TopicPartition(shared_topic, 0)])
    poll_count(consumer, 1)
    assert 0 < consumer.buffered_bytes <= consumer.memory_limit_bytes == 100_000


@pytest.mark.behaviour("C20")
def test_read_committed_returns_only_committed_records(
    member: Members, group_broker: Broker, shared_topic: str, group_id: str
) -> None:
    tp = TopicPartition(shared_topic, 0)
    careful, curious = member(isolation_level="read_committed"), member()
    with Producer(bootstrap_servers=group_broker.bootstrap_servers, transactional_id=group_id) as producer:
        producer.init_transactions()
        for end in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            producer.send(shared_topic, end.__name__.encode(), partition=0).result(20)
            end()
        producer.begin_transaction()
        producer.send(shared_topic, b"open", partition=0).result(20)
        for consumer in (careful, curious):
            consumer.assign([tp])
        assert [r.value for r in poll_count(curious, 3)] == [b"abort_transaction", b"commit_transaction", b"open"]
        assert [r.value for r in poll_count(careful, 1)] == [b"commit_transaction"]
        assert len(careful.poll(0.1)) == 0, "an open transaction is not seen"
        assert careful.end_offsets([tp]) == {tp: 4}, "the last stable offset"
        producer.commit_transaction()
        assert [r.value for r in poll_count(careful, 1)] == [b"open"]
