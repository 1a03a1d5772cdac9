"""The events of a producer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla import Producer, TopicPartition, aio
from ottla.client.producer import events
from ottla.errors import ErrorCode, IllegalStateError
from ottla.trace import Trace
from tests.client.conftest import NewTopicName
from tests.client.producer.test_sender import Story, refused


def kinds(trace: Trace) -> list[str]:
    return [type(moment.event).__name__ for moment in trace]


def of_kind(trace: Trace, kind: type[Any]) -> list[Any]:
    return [moment.event for moment in trace if isinstance(moment.event, kind)]


WAY = ["BatchBegun", "BatchDrained", "ProduceSent", "ProduceCompleted", "Acknowledged"]


@pytest.mark.behaviour("X1")
def test_records_are_followed_from_their_queue_to_the_answer(servers: str, new_topic: NewTopicName) -> None:
    tp = TopicPartition(new_topic(1), 0)
    with Producer(bootstrap_servers=servers, linger_ms=80_000) as producer, producer.trace() as trace:
        for _ in range(3):
            producer.send(tp.topic, b"v")
        producer.flush()
    assert [kind for kind in kinds(trace) if kind in WAY] == WAY
    drained, sent, acknowledged = (
        of_kind(trace, kind)[0] for kind in (events.BatchDrained, events.ProduceSent, events.Acknowledged)
    )
    assert (drained.partition, drained.records, drained.attempts) == (tp, 3, 0)
    assert (sent.partitions, sent.size_bytes) == ((tp,), drained.size_bytes)
    assert acknowledged[:3] == (tp, 0, 3)
    assert acknowledged.took_ms >= drained.waited_ms > 0
    assert str(acknowledged).startswith(f"3 records of {tp} from 0 acknowledged after ")


def test_an_asyncio_producer_emits_the_same_events(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(1)

    async def story() -> list[str]:
        async with aio.Producer(bootstrap_servers=servers) as producer:
            with producer.trace() as trace:
                await (await producer.send(topic, b"v"))
            assert producer.snapshot().accumulator.queues == ()
            return kinds(trace)

    assert [kind for kind in asyncio.run(story()) if kind in WAY] == WAY


def test_a_table_s_batches_are_followed_too(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(1)
    with Producer(bootstrap_servers=servers) as producer, producer.trace() as trace:
        producer.send_many(topic, [b"v"] * 5)
        producer.flush()
    assert [kind for kind in kinds(trace) if kind in WAY] == WAY
    assert of_kind(trace, events.Acknowledged)[0].records == 5


def test_the_states_and_requests_of_a_transaction_are_traced(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(1)
    with Producer(bootstrap_servers=servers, transactional_id=f"tx-{topic}") as producer, producer.trace() as trace:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"v")
        assert [event.state for event in of_kind(trace, events.TransactionChanged)] == [
            *("INITIALIZING", "READY", "IN_TRANSACTION", "COMMITTING_TRANSACTION", "READY")
        ]
    asked = [event.api for event in of_kind(trace, events.CoordinatorAsked)]
    assert (asked[0], asked[-1]) == ("FindCoordinator", "EndTxn")
    assert "InitProducerId" in asked
    assert [event.api for event in of_kind(trace, events.CoordinatorAnswered)] == asked


def test_retries_and_failures_of_a_batch_are_traced_with_their_reason() -> None:
    story = Story(enable_idempotence=False, retries=1)
    story.answers = [refused(ErrorCode.NOT_LEADER_OR_FOLLOWER), refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    with story.sender._events.trace() as trace:
        story.send(3)
        story.run()
    (retried,), (failed,) = of_kind(trace, events.Retried), of_kind(trace, events.BatchFailed)
    assert (retried.partition, retried.attempts, retried.backoff_ms) == (TopicPartition("t", 0), 1, 100)
    assert "NOT_LEADER_OR_FOLLOWER" in retried.error
    assert "NOT_LEADER_OR_FOLLOWER" in failed.error
    assert [event.attempts for event in of_kind(trace, events.BatchDrained)] == [0, 1]


def test_splitting_a_batch_is_traced() -> None:
    story = Story()
    with story.sender._events.trace() as trace:
        story.answers = [refused(ErrorCode.MESSAGE_TOO_LARGE)]
        story.send(2)
        story.run()
    assert of_kind(trace, events.BatchSplit) == [(TopicPartition("t", 0), 2)]
    assert [event.records for event in of_kind(trace, events.Acknowledged)] == [1, 1]


def test_records_undelivered_at_a_forced_close_are_traced() -> None:
    story = Story()
    with story.sender._events.trace() as trace:
        story.send(2)
        story.sender.batches.fail_remaining()
    (failed,) = of_kind(trace, events.BatchFailed)
    assert str(failed) == "2 records of t-0 failed: the producer was closed before the record was delivered"


def test_closing_a_producer_is_traced(servers: str) -> None:
    producer = Producer(bootstrap_servers=servers)
    producer.close()
    with pytest.raises(IllegalStateError, match="the producer is closed"):
        producer.trace()


def test_no_event_is_created_without_listeners(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(1)
    with Producer(bootstrap_servers=servers) as producer:
        with producer.trace() as trace:
            pass
        producer.send(topic, b"v").result(10)
        assert trace.events() == []
        assert not producer._core.events.active
