"""The events and the snapshot of a consumer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.consumer import events
from ottla.client.consumer.snapshot import ConsumerSnapshot
from ottla.errors import IllegalStateError
from ottla.trace import Trace
from tests.client.conftest import eventually
from tests.client.consumer.conftest import Members, fill_topic, partitions, poll_count, poll_until


def of_kind(trace: Trace, kind: type[Any]) -> list[Any]:
    return [moment.event for moment in trace if isinstance(moment.event, kind)]


@pytest.mark.behaviour("X1")
def test_trace_events_of_a_join_come_in_order(member: Members, shared_topic: str) -> None:
    consumer = member()
    with consumer.trace() as trace:
        consumer.subscribe([shared_topic])
        poll_until([consumer], lambda: of_kind(trace, events.Assigned))
    reported: list[Any] = [moment.event for moment in trace if isinstance(moment.event, events.REBALANCE)]
    assert [type(event).__name__ for event in reported] == [
        *("RebalanceStarted", "JoinRefused"),  # the first join brings the member its id
        *("RebalanceStarted", "Joined", "Synced", "Assigned"),
    ]
    assert reported[3].leads
    assert reported[3].generation == reported[4].generation == consumer.group_metadata().generation_id
    assert reported[5].partitions == reported[5].added == tuple(partitions(shared_topic))


def test_trace_events_give_the_reason_of_a_rejoin_and_the_revoked_partitions(
    member: Members, shared_topic: str
) -> None:
    first, second = member(), member()
    first.subscribe([shared_topic])
    poll_until([first], first.assignment)
    with first.trace() as trace:
        second.subscribe([shared_topic])
        poll_until([first, second], lambda: len(first.assignment()) == len(second.assignment()) == 2)
    assert of_kind(trace, events.Revoked)[0].partitions == tuple(partitions(shared_topic))
    assert of_kind(trace, events.RebalanceStarted)[0].reason == "a rebalance is in progress"
    assert "REBALANCE_IN_PROGRESS" in [beat.error for beat in of_kind(trace, events.HeartbeatAnswered)]


def test_records_are_followed_from_the_fetch_to_the_user_and_the_commit(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 4, partitions=1)
    consumer = member(enable_auto_commit=False)
    tp = TopicPartition(shared_topic, 0)
    with consumer.trace() as trace:
        consumer.assign([tp])
        poll_count(consumer, 4)
        consumer.commit()
    order = [moment.event for moment in trace]
    sent, completed, buffered, handed, committed = (
        of_kind(trace, kind)[0]
        for kind in (events.FetchSent, events.FetchCompleted, events.Buffered, events.HandedOut, events.Committed)
    )
    assert order.index(sent) < order.index(completed) < order.index(buffered) < order.index(handed)
    assert (sent.offsets, handed.partition, handed.offset, handed.records) == ({tp: 0}, tp, 0, 4)
    assert completed.size_bytes == buffered.size_bytes > 0
    assert committed == ({tp: 4}, "")


def test_columns_are_followed_too(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 3, partitions=1)
    consumer = member()
    with consumer.trace() as trace:
        consumer.assign([TopicPartition(shared_topic, 0)])
        while not consumer.poll_columns(0.1):
            pass
    assert [event.records for event in of_kind(trace, events.HandedOut)] == [3]


@pytest.mark.behaviour("X1")
def test_a_long_gap_between_polls_is_traced(member: Members, shared_topic: str) -> None:
    consumer = member()
    consumer.subscribe([shared_topic])
    with consumer.trace() as trace:
        begin = time.monotonic()
        consumer.poll(0)
        between = time.monotonic()
        eventually(lambda: time.monotonic() > between + 0.03)
        consumer.poll(0)
        most_ms = (time.monotonic() - begin) * 1000
    first, second = of_kind(trace, events.Polled)
    assert first.gap_ms == 0
    assert 30 <= second.gap_ms <= most_ms


def test_leaving_is_traced_with_its_reason(member: Members, shared_topic: str) -> None:
    consumer = member()
    consumer.subscribe([shared_topic])
    poll_until([consumer], consumer.assignment)
    trace = consumer.trace()
    consumer.close()
    assert [event.reason for event in of_kind(trace, events.Left)] == ["the consumer is closed"]


def test_every_event_formats_as_one_line(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 8)
    consumer = member()
    trace = consumer.trace()
    consumer.subscribe([shared_topic])
    poll_count(consumer, 8)
    consumer.close()
    texts = [str(moment.event) for moment in trace]
    assert all(text and "\n" not in text and "(" not in text.split()[0] for text in texts)
    assert f"assigned {shared_topic} 0,1,2,3, new: all" in texts
    assert any(text.startswith("committed ") for text in texts)


def wait_for(consumer: Consumer, condition: Callable[[ConsumerSnapshot], object]) -> ConsumerSnapshot:
    """Poll until a snapshot satisfies the condition, and return it."""
    poll_until([consumer], lambda: condition(consumer.snapshot()))
    return consumer.snapshot()


@pytest.mark.behaviour("C18", "X1")
def test_a_running_consumer_shows_all_of_its_parts(
    member: Members, shared_topic: str, group_producer: Producer, group_id: str
) -> None:
    consumer = member(max_poll_records=3)
    consumer.subscribe([shared_topic])
    fill_topic(group_producer, shared_topic, 40)
    seen = wait_for(consumer, lambda now: now.fetcher.completed_fetches)
    assert [view.partition for view in seen.subscription.partitions] == partitions(shared_topic)
    waiting = sum(view.records for view in seen.fetcher.completed_fetches)
    assert waiting == sum(view.buffered_records for view in seen.subscription.partitions) > 0
    assert seen.fetcher.buffered_bytes > 0
    assert (seen.network.unsent, seen.network.pending_completion) == ({}, 0)
    assert seen.coordinator is not None
    assert seen.heartbeat is not None
    assert (seen.coordinator.group_id, seen.coordinator.state) == (group_id, "stable")
    assert seen.coordinator.member_id == consumer.group_metadata().member_id
    assert seen.coordinator.poll_gap_ms is not None
    assert seen.heartbeat.alive
    assert seen.heartbeat.next_ms is not None
    assert seen.heartbeat.next_ms <= 50
    later = wait_for(consumer, lambda now: not now.fetcher.completed_fetches and now.network.in_flight_requests)
    (requests,) = later.network.in_flight_requests.values()
    assert [request.api for request in requests] == ["Fetch"]
    assert later.fetcher.nodes_with_pending_fetch == tuple(later.network.in_flight_requests)


@pytest.mark.behaviour("X1")
def test_lag_and_pauses_are_shown(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 10, partitions=1)
    tp = TopicPartition(shared_topic, 0)
    consumer = member(max_poll_records=4)
    consumer.assign([tp])
    poll_count(consumer, 4)
    consumer.pause(tp)
    (view,) = consumer.snapshot().subscription.partitions
    assert view[:4] == (tp, 4, 6, True)
    assert view.buffered_records == 6


@pytest.mark.behaviour("X1")
def test_requests_waiting_for_an_unresponsive_broker_are_unsent(member: Members) -> None:
    consumer = member(bootstrap_servers="127.0.0.1:1")
    consumer.assign([TopicPartition("t", 0)])
    seen = consumer.snapshot()
    assert seen.network == ({}, {}, 0)
    assert seen.subscription.partitions[0].position is None
    assert seen.heartbeat is None


def test_another_thread_may_take_a_snapshot_while_the_user_polls(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    consumer = member(max_poll_records=1)
    consumer.subscribe([shared_topic])
    fill_topic(group_producer, shared_topic, 400)
    errors: list[Exception] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            try:
                consumer.snapshot()
            except Exception as error:
                errors.append(error)
                return

    onlooker = threading.Thread(target=look)
    onlooker.start()
    poll_count(consumer, 400)
    ended.set()
    onlooker.join()
    assert errors == []


def test_an_embedded_broker_traces_group_events_with_their_reasons() -> None:
    with Broker() as broker:
        trace = broker.trace()
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 1)])
        with Consumer(bootstrap_servers=broker.bootstrap_servers, group_id="g") as consumer:
            consumer.subscribe(["t"])
            eventually(lambda: consumer.poll(0.02) or consumer.assignment())
        eventually(lambda: "Emptied" in [type(moment.event).__name__ for moment in trace])
    kinds = [type(moment.event).__name__ for moment in trace]
    assert [kind for kind in kinds if kind != "MemberIdGiven"] == [
        *("RebalanceStarted", "Stabilized", "Assigned"),
        *("MemberLeft", "RebalanceStarted", "Emptied"),
    ]


def test_a_broker_of_another_process_cannot_be_traced(group_broker: Broker) -> None:
    with pytest.raises(IllegalStateError, match="needs a running broker in this process"):
        group_broker.trace()
