"""Members of KIP-848 on a real broker: assignment by the coordinator, revocation and takeover."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, SubscriptionPattern
from ottla.client.consumer import events
from ottla.client.consumer.group.membership.consumer_state import ConsumerState
from ottla.errors import IllegalStateError, KafkaError, UnsupportedVersionError
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tests.broker.wire import Wire
from tests.client.conftest import eventually, fresh_name
from tests.client.consumer.conftest import Members, fill_topic, partitions, poll_count, poll_until, shared


@pytest.fixture
def newer(group_broker: Broker, group_id: str) -> Iterator[Members]:
    """Create members of KIP-848 in one group; they are closed at the end."""
    made: list[Consumer] = []

    def make(**settings: Any) -> Consumer:
        quick = {
            "bootstrap_servers": group_broker.bootstrap_servers,
            "group_id": group_id,
            "group_protocol": "consumer",
            "auto_offset_reset": "earliest",
            "retry_backoff_ms": 20,
        }
        made.append(Consumer(**{**quick, **settings}))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close(5)


class RecordingListener:
    """A listener that records its calls."""

    def __init__(self) -> None:
        self.assigned: list[int] = []
        self.revoked: list[int] = []
        self.lost: list[int] = []

    def on_partitions_assigned(self, tps: list[TopicPartition]) -> None:
        self.assigned.append(len(tps))

    def on_partitions_revoked(self, tps: list[TopicPartition]) -> None:
        self.revoked.append(len(tps))

    def on_partitions_lost(self, tps: list[TopicPartition]) -> None:
        self.lost.append(len(tps))


def positions(consumer: Consumer) -> dict[TopicPartition, int]:
    return {tp: consumer.position(tp) for tp in consumer.assignment()}


@pytest.mark.behaviour("C1", "C18")
def test_the_first_polls_join_and_later_ones_return_records(
    newer: Members, shared_topic: str, group_producer: Producer, group_id: str
) -> None:
    consumer, listener = newer(), RecordingListener()
    fill_topic(group_producer, shared_topic, 40)
    consumer.subscribe([shared_topic], listener)
    assert len(poll_count(consumer, 40)) == 40
    assert listener.assigned == [4]
    coordinator = consumer._core.coordinator
    assert coordinator is not None
    poll_until([consumer], lambda: coordinator.state is ConsumerState.STABLE)
    place = consumer.group_metadata()
    assert (place.group_id, place.generation_id > 0, len(place.member_id)) == (group_id, True, 22)
    assert type(coordinator.heartbeat_thread).__name__ == "HeartbeatThread"


@pytest.mark.behaviour("C14", "C15", "C16")
def test_only_moving_partitions_are_revoked_and_their_records_are_not_read_twice(
    newer: Members, shared_topic: str, group_producer: Producer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    one, listener = newer(auto_commit_interval_ms=60_000), RecordingListener()
    one.subscribe([shared_topic], listener)
    fill_topic(group_producer, shared_topic, 40)
    seen = poll_count(one, 40)
    two = newer()
    two.subscribe([shared_topic])
    poll_until([one, two], lambda: shared(one, two) == [2, 2])
    assert (listener.revoked, listener.lost) == ([2], [])
    fill_topic(group_producer, shared_topic, 40)
    ends = dict.fromkeys(partitions(shared_topic), 20)
    seen += poll_until([one, two], lambda: {**positions(one), **positions(two)} == ends)
    assert len({(r.partition, r.offset) for r in seen}) == len(seen) == 80
    (lines,) = [
        text for text in caplog.messages if "reconciling in epoch" in text and "(owned - assigned):     [topic" in text
    ]
    assert [line.split(":")[0].strip() for line in lines.splitlines()[1:]] == [
        *("Member", "Assigned partitions", "Current owned partitions"),
        *("Added partitions (assigned - owned)", "Revoked partitions (owned - assigned)"),
    ]


@pytest.mark.behaviour("C10", "C14")
def test_closing_leaves_at_once_and_surplus_members_take_over(newer: Members, shared_topic: str) -> None:
    members = [newer() for _ in range(5)]
    for member in members:
        member.subscribe([shared_topic])
    poll_until(members, lambda: sorted(shared(*members)) == [0, 1, 1, 1, 1])
    idle = next(member for member in members if not member.assignment())
    next(member for member in members if member.assignment()).close()
    rest = [member for member in members if not member._core.closed]
    poll_until(rest, lambda: shared(idle) == [1])


@pytest.mark.behaviour("C15")
def test_a_changed_subscription_and_new_partitions_are_reassigned(
    newer: Members, shared_topic: str, group_admin: Admin, group_broker: Broker
) -> None:
    other = fresh_name()
    group_admin.create_topics([NewTopic(other, 1)])
    consumer, listener = newer(metadata_max_age_ms=100), RecordingListener()
    consumer.subscribe([shared_topic], listener)
    poll_until([consumer], lambda: shared(consumer) == [4])
    consumer.subscribe([other], listener)
    poll_until([consumer], lambda: consumer.assignment() == {TopicPartition(other, 0)})
    assert listener.revoked == [4]
    with Wire(group_broker.bootstrap_servers) as wire:
        wire.ask(CreatePartitionsRequest([CreatePartitionsTopic(other, 3)], 1000))
    poll_until([consumer], lambda: shared(consumer) == [3])


@pytest.mark.behaviour("C15", "C19")
@pytest.mark.parametrize("kind", [re.compile, SubscriptionPattern], ids=["ours", "the broker's"])
def test_a_new_topic_that_matches_the_pattern_is_read(
    newer: Members, group_admin: Admin, group_producer: Producer, kind: Any
) -> None:
    name = fresh_name()
    group_admin.create_topics([NewTopic(f"{name}-1", 1)])
    consumer = newer(metadata_max_age_ms=100)
    consumer.subscribe(kind(f"{name}-.*"))
    poll_until([consumer], lambda: shared(consumer) == [1])
    group_admin.create_topics([NewTopic(f"{name}-2", 2)])
    poll_until([consumer], lambda: shared(consumer) == [3])
    assert consumer.subscription() == {f"{name}-1", f"{name}-2"}
    group_producer.send(f"{name}-2", b"here").result(5)
    assert [record.value for record in poll_count(consumer, 1)] == [b"here"]


def test_another_pattern_with_the_same_matches_revokes_nothing(
    newer: Members, shared_topic: str, group_producer: Producer
) -> None:
    consumer, listener = newer(metadata_max_age_ms=50), RecordingListener()
    consumer.subscribe(SubscriptionPattern(shared_topic), listener)
    poll_until([consumer], lambda: shared(consumer) == [4])
    epoch = consumer.group_metadata().generation_id
    consumer.subscribe(SubscriptionPattern(f"{shared_topic}|nothing"), listener)
    poll_until([consumer], lambda: consumer.group_metadata().generation_id > epoch)
    version = consumer._core.metadata.version
    poll_until([consumer], lambda: consumer._core.metadata.version > version + 1)
    fill_topic(group_producer, shared_topic, 8)
    assert len(poll_count(consumer, 8)) == 8
    assert (listener.assigned, listener.revoked) == ([4], [])


def test_a_pattern_for_the_broker_needs_the_protocol_and_some_text(member: Members, newer: Members) -> None:
    with pytest.raises(IllegalStateError, match=r"needs group\.protocol=consumer"):
        member().subscribe(SubscriptionPattern("t.*"))
    with pytest.raises(TypeError, match="is of text"):
        newer().subscribe(SubscriptionPattern(7))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="is empty"):
        newer().subscribe(SubscriptionPattern(""))


def test_a_pattern_that_the_broker_does_not_understand_is_an_error_and_another_may_be_tried(
    newer: Members, shared_topic: str
) -> None:
    consumer = newer()
    consumer.subscribe(SubscriptionPattern("(t"))
    with pytest.raises(KafkaError, match=r"INVALID_REGULAR_EXPRESSION.*invalid regular expression"):
        poll_until([consumer], lambda: False)
    with pytest.raises(KafkaError, match="INVALID_REGULAR_EXPRESSION"):
        consumer.poll(0)
    consumer.unsubscribe()
    consumer.subscribe(SubscriptionPattern(shared_topic))
    poll_until([consumer], lambda: shared(consumer) == [4])


@pytest.mark.behaviour("C9")
def test_exceeding_the_max_poll_interval_logs_both_remedies_and_the_next_poll_rejoins(
    newer: Members, shared_topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    slow, other, listener = newer(max_poll_interval_ms=300), newer(), RecordingListener()
    slow.subscribe([shared_topic], listener)
    other.subscribe([shared_topic])
    poll_until([slow, other], lambda: shared(slow, other) == [2, 2])
    poll_until([other], lambda: shared(other) == [4])
    assert [text for text in caplog.messages if "max.poll.interval.ms" in text and "max.poll.records" in text]
    poll_until([slow, other], lambda: shared(slow, other) == [2, 2])
    assert 2 in listener.lost


@pytest.mark.behaviour("C12")
def test_a_static_member_that_returns_keeps_its_partitions_without_a_rebalance_of_others(
    newer: Members, shared_topic: str
) -> None:
    one, two, listener = newer(group_instance_id="one"), newer(group_instance_id="two"), RecordingListener()
    one.subscribe([shared_topic])
    two.subscribe([shared_topic], listener)
    poll_until([one, two], lambda: shared(one, two) == [2, 2])
    before, heard = one.assignment(), (list(listener.assigned), list(listener.revoked))
    one.close()
    again = newer(group_instance_id="one")
    again.subscribe([shared_topic])
    poll_until([again, two], lambda: again.assignment())
    assert again.assignment() == before
    assert (listener.assigned, listener.revoked) == heard


@pytest.mark.behaviour("C12")
def test_a_static_member_does_not_inherit_the_pattern_of_the_previous_holder_of_its_id(
    newer: Members, shared_topic: str, group_admin: Admin
) -> None:
    group_admin.create_topics([NewTopic(f"{shared_topic}-too", 2)])
    first = newer(group_instance_id="one")
    first.subscribe(SubscriptionPattern(f"{shared_topic}.*"))
    poll_until([first], lambda: shared(first) == [6])
    first.close()
    second = newer(group_instance_id="one")
    second.subscribe([shared_topic])
    poll_until([second], lambda: shared(second) == [4])


@pytest.mark.behaviour("C12")
def test_a_second_member_with_an_instance_id_in_use_is_rejected_with_the_remedy(
    newer: Members, shared_topic: str
) -> None:
    first, second = newer(group_instance_id="i"), newer(group_instance_id="i")
    first.subscribe([shared_topic])
    poll_until([first], lambda: shared(first) == [4])
    second.subscribe([shared_topic])
    with pytest.raises(
        KafkaError, match=r"UNRELEASED_INSTANCE_ID: group.instance.id = 'i' is in use.*close the consumer"
    ):
        poll_until([second], lambda: False)
    second.close()
    poll_until([first], lambda: shared(first) == [4])


@pytest.mark.behaviour("C17")
def test_a_listener_may_commit_revoked_partitions_and_is_called_at_close(newer: Members, shared_topic: str) -> None:
    consumer, other = newer(enable_auto_commit=False), newer()
    heard: list[list[TopicPartition]] = []

    def revoked(tps: list[TopicPartition]) -> None:
        heard.append(tps)
        consumer.commit(dict.fromkeys(tps, 7))

    consumer.subscribe([shared_topic], on_revoked=revoked)
    poll_until([consumer], lambda: shared(consumer) == [4])
    other.subscribe([shared_topic])
    poll_until([consumer, other], lambda: shared(consumer, other) == [2, 2])
    consumer.unsubscribe()
    assert [len(tps) for tps in heard] == [2, 2]
    assert set(other.committed(partitions(shared_topic)).values()) == {OffsetAndMetadata(7)}
    poll_until([other], lambda: shared(other) == [4])


@pytest.mark.behaviour("C17")
def test_a_listener_is_called_for_lost_partitions(newer: Members, group_broker: Broker, shared_topic: str) -> None:
    heard: list[tuple[str, int]] = []
    consumer = newer()
    consumer.subscribe(
        [shared_topic],
        on_assigned=lambda tps: heard.append(("assigned", len(tps))),
        on_revoked=lambda tps: heard.append(("revoked", len(tps))),
        on_lost=lambda tps: heard.append(("lost", len(tps))),
    )
    poll_until([consumer], lambda: shared(consumer) == [4])
    place = consumer.group_metadata()
    with Wire(group_broker.bootstrap_servers) as wire:
        answer = wire.ask(ConsumerGroupHeartbeatRequest(place.group_id, place.member_id, -1), 1)
        assert answer.error_code == 0
    poll_until([consumer], lambda: len(heard) == 3)
    assert heard == [("assigned", 4), ("lost", 4), ("assigned", 4)]


@pytest.mark.behaviour("C6")
def test_commits_apply_to_the_topic_that_was_read_and_a_restart_continues_there(
    newer: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 8)
    one = newer(enable_auto_commit=False)
    one.subscribe([shared_topic])
    poll_count(one, 8)
    one.commit()
    assert one.commit_async().done() is False
    poll_until([one], lambda: not one.snapshot().coordinator.pending_commits)  # type: ignore[union-attr]
    one.close()
    two = newer()
    two.subscribe([shared_topic])
    fill_topic(group_producer, shared_topic, 4)
    assert [record.offset for record in poll_count(two, 4)] == [2, 2, 2, 2]


def test_a_consumer_with_manual_assignment_commits_without_a_member(
    newer: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 4)
    tps = partitions(shared_topic)
    consumer = newer()
    consumer.assign(tps)
    poll_count(consumer, 4)
    consumer.commit()
    assert set(consumer.committed(tps).values()) == {OffsetAndMetadata(1, leader_epoch=0)}
    assert consumer.group_metadata().member_id == ""


def test_an_exception_of_a_listener_is_raised_and_the_member_continues(newer: Members, shared_topic: str) -> None:
    one, two = newer(), newer()

    def fail(tps: list[TopicPartition]) -> None:
        raise ZeroDivisionError(f"at {len(tps)}")

    one.subscribe([shared_topic], on_assigned=fail)
    with pytest.raises(ZeroDivisionError, match="at 4"):
        poll_until([one], lambda: False)
    one.subscribe([shared_topic], on_revoked=fail)
    poll_until([one], lambda: shared(one) == [4])
    two.subscribe([shared_topic])
    with pytest.raises(ZeroDivisionError, match="at 2"):
        poll_until([one, two], lambda: False)
    poll_until([one, two], lambda: shared(one, two) == [2, 2])
    one.subscribe([shared_topic])


def test_a_listener_may_unsubscribe_in_the_middle(newer: Members, shared_topic: str) -> None:
    one, two = newer(), newer()
    one.subscribe([shared_topic], on_assigned=lambda tps: one.unsubscribe())
    with pytest.raises(IllegalStateError, match="unsubscribed while it was polled"):
        poll_until([one], lambda: False)
    two.subscribe([shared_topic])
    poll_until([two], lambda: shared(two) == [4])
    assert shared(one) == [0]


def test_a_poll_without_a_timeout_reports_that_a_listener_unsubscribed(newer: Members, shared_topic: str) -> None:
    for _ in range(5):
        one = newer()
        one.subscribe([shared_topic], on_assigned=leaving(one))
        with pytest.raises(IllegalStateError, match="unsubscribed while it was polled"):
            eventually(partial(one.poll, 0))


def leaving(consumer: Consumer[Any, Any]) -> Callable[[list[TopicPartition]], None]:
    """A listener that unsubscribes."""
    return lambda partitions: consumer.unsubscribe()


def test_enforce_rebalance_has_no_effect_and_logs_it(
    newer: Members, shared_topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = newer()
    consumer.subscribe([shared_topic])
    poll_until([consumer], lambda: shared(consumer) == [4])
    consumer.enforce_rebalance()
    poll_until([consumer], lambda: any("enforce_rebalance() does nothing" in text for text in caplog.messages))


def test_the_configured_remote_assignor_is_requested_from_the_broker(newer: Members, group_admin: Admin) -> None:
    names = [fresh_name() for _ in range(2)]
    group_admin.create_topics([NewTopic(name, 3) for name in names])
    one, two = (newer(group_remote_assignor="range") for _ in range(2))
    one.subscribe(names)
    two.subscribe(names)
    poll_until([one, two], lambda: sorted(shared(one, two)) == [2, 4])
    three = newer(group_remote_assignor="best")
    three.subscribe(names)
    with pytest.raises(KafkaError, match=r"UNSUPPORTED_ASSIGNOR: group.remote.assignor = best.*uniform, range"):
        poll_until([three], lambda: False)


def test_trace_listeners_receive_the_events_of_a_member(newer: Members, shared_topic: str) -> None:
    one, two = newer(), newer()
    trace = one.trace()
    one.subscribe([shared_topic])
    poll_until([one], lambda: shared(one) == [4])
    two.subscribe([shared_topic])
    poll_until([one, two], lambda: shared(one, two) == [2, 2])
    one.close()
    reported = [type(moment.event) for moment in trace if isinstance(moment.event, events.REBALANCE)]
    assert reported == [
        *(events.RebalanceStarted, events.Joined, events.Synced, events.Assigned),
        *(events.RebalanceStarted, events.Synced, events.Revoked, events.Assigned),
        *(events.Revoked, events.Left),
    ]


def test_a_group_migrates_between_protocols_with_its_members(
    newer: Members, member: Members, shared_topic: str, group_producer: Producer
) -> None:
    old = [member(auto_commit_interval_ms=50) for _ in range(2)]
    for one in old:
        one.subscribe([shared_topic])
    poll_until(old, lambda: shared(*old) == [2, 2])
    new = [newer(auto_commit_interval_ms=50) for _ in range(2)]
    new[0].subscribe([shared_topic])
    poll_until([*old, new[0]], lambda: sorted(shared(*old, new[0])) == [1, 1, 2])
    old[0].close()
    new[1].subscribe([shared_topic])
    old[1].close()
    poll_until(new, lambda: shared(*new) == [2, 2])
    back = member()
    back.subscribe([shared_topic])
    poll_until([*new, back], lambda: sorted(shared(*new, back)) == [1, 1, 2])
    for one in new:
        one.close()
    poll_until([back], lambda: shared(back) == [4])
    fill_topic(group_producer, shared_topic, 8)
    assert len(poll_count(back, 8)) == 8


def test_a_recreated_topic_is_revoked_and_assigned_again(
    newer: Members, shared_topic: str, group_admin: Admin, group_producer: Producer
) -> None:
    consumer, listener = newer(metadata_max_age_ms=100), RecordingListener()
    consumer.subscribe([shared_topic], listener)
    fill_topic(group_producer, shared_topic, 8)
    poll_count(consumer, 8)
    group_admin.delete_topics([shared_topic])
    group_admin.create_topics([NewTopic(shared_topic, 4)])
    fill_topic(group_producer, shared_topic, 4)
    assert {record.offset for record in poll_count(consumer, 4)} == {0}
    assert sum(listener.assigned) == 8
    assert sum(listener.revoked) == 4


def test_a_deleted_topic_is_revoked_without_committing_its_offsets(
    newer: Members, shared_topic: str, group_admin: Admin, group_producer: Producer
) -> None:
    doomed = fresh_name()
    group_admin.create_topics([NewTopic(doomed, 2)])
    consumer, listener = newer(max_poll_interval_ms=60_000), RecordingListener()
    consumer.subscribe([shared_topic, doomed], listener)
    fill_topic(group_producer, shared_topic, 4)
    fill_topic(group_producer, doomed, 4, partitions=2)
    poll_count(consumer, 8)
    group_admin.delete_topics([doomed])
    poll_until([consumer], lambda: shared(consumer) == [4])
    assert listener.revoked == [2]
    fill_topic(group_producer, shared_topic, 4)
    assert len(poll_count(consumer, 4)) == 4


def test_a_cluster_without_such_groups_is_an_error_that_names_the_other_protocol(without_groups: Broker) -> None:
    consumer = Consumer(bootstrap_servers=without_groups.bootstrap_servers, group_id="g", group_protocol="consumer")
    with consumer:
        consumer.subscribe(["t"])
        with pytest.raises((KafkaError, UnsupportedVersionError), match=r"set group\.protocol=classic"):
            poll_until([consumer], lambda: False)


@pytest.fixture
def without_groups() -> Iterator[Broker]:
    """A broker with the feature `group.version` at 0."""
    from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        update = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("group.version", 0, upgrade_type=2)])
        assert wire.ask(update, 1).error_code == 0
        yield broker


def test_offsets_are_committed_in_transactions_with_the_member_epoch(
    newer: Members, shared_topic: str, group_producer: Producer, group_broker: Broker
) -> None:
    fill_topic(group_producer, shared_topic, 4)
    consumer = newer(enable_auto_commit=False)
    consumer.subscribe([shared_topic])
    poll_count(consumer, 4)
    with Producer(bootstrap_servers=group_broker.bootstrap_servers, transactional_id=fresh_name()) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        offsets = {tp: OffsetAndMetadata(1) for tp in partitions(shared_topic)}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
        assert set(consumer.committed(partitions(shared_topic)).values()) == {OffsetAndMetadata(1)}
        producer.begin_transaction()
        old = consumer.group_metadata()._replace(generation_id=99)
        with pytest.raises(KafkaError, match=r"STALE_MEMBER_EPOCH|ILLEGAL_GENERATION|UNKNOWN_MEMBER"):
            producer.send_offsets_to_transaction(offsets, old)
        producer.abort_transaction()


def test_a_member_sends_its_rack_and_its_assignor(
    newer: Members, group_broker: Broker, group_id: str, shared_topic: str
) -> None:
    consumer = newer(client_rack="west", group_remote_assignor="range")
    consumer.subscribe([shared_topic])
    poll_until([consumer], lambda: shared(consumer) == [4])
    with Wire(group_broker.bootstrap_servers) as wire:
        (group,) = wire.ask(ConsumerGroupDescribeRequest([group_id])).groups
    assert group.assignor_name == "range"
    assert [(m.member_id, m.rack_id) for m in group.members] == [(consumer.group_metadata().member_id, "west")]


def test_heartbeats_keep_the_membership_during_long_processing(newer: Members, shared_topic: str) -> None:
    consumer = newer()
    trace = consumer.trace()
    consumer.subscribe([shared_topic])
    poll_until([consumer], lambda: shared(consumer) == [4])
    heard: list[Any] = []
    deadline = time.monotonic() + 10
    while len(heard) < 3:
        assert time.monotonic() < deadline
        heard += [moment.event for moment in trace if isinstance(moment.event, events.HeartbeatAnswered)]
    assert {event.error for event in heard} == {""}
