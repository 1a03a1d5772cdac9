from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.consumer import RangeReader
from ottla.client.consumer.assignors.wire import decode_subscription
from ottla.client.consumer.group.membership.member_state import ClassicMemberState
from ottla.errors import (
    CommitFailedError,
    ConfigError,
    FencedInstanceIdError,
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    OffsetOutOfRangeError,
    WakeupError,
)
from ottla.model import OffsetAndMetadata
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.broker.membership import describe
from tests.broker.wire import Wire
from tests.client.conftest import eventually, fresh_name
from tests.client.consumer.conftest import Members, beaten_for, fill_topic, partitions, poll_count, poll_until, shared


class RecordingListener:
    """A listener that records its calls."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, list[int]]] = []

    def on_partitions_assigned(self, tps: list[TopicPartition]) -> None:
        self.reported.append(("assigned", [tp.partition for tp in tps]))

    def on_partitions_revoked(self, tps: list[TopicPartition]) -> None:
        self.reported.append(("revoked", [tp.partition for tp in tps]))

    def on_partitions_lost(self, tps: list[TopicPartition]) -> None:
        self.reported.append(("lost", [tp.partition for tp in tps]))


@pytest.mark.behaviour("C1")
def test_the_first_polls_join_and_later_ones_return_records(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 8)
    consumer = member()
    consumer.subscribe([shared_topic])
    assert consumer.assignment() == set()
    records = poll_count(consumer, 8)
    assert {record.value for record in records} == {b"%d" % n for n in range(8)}
    assert consumer.assignment() == set(partitions(shared_topic))
    coordinator = consumer._core.coordinator
    assert coordinator is not None
    assert coordinator.state is ClassicMemberState.STABLE
    assert coordinator.heartbeat_thread is not None
    assert coordinator.heartbeat_thread.is_alive()


@pytest.mark.behaviour("C18")
def test_the_classes_of_a_member_have_kafkas_names(member: Members, shared_topic: str) -> None:
    consumer = member()
    consumer.subscribe([shared_topic])
    poll_until([consumer], consumer.assignment)
    coordinator = consumer._core.coordinator
    assert type(coordinator).__name__ == "ConsumerCoordinator"
    assert coordinator is not None
    assert type(coordinator.heartbeat_thread).__name__ == "HeartbeatThread"


@pytest.mark.behaviour("C5")
def test_positions_start_at_the_committed_offsets_of_the_group(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 40)
    one, two, *_ = partitions(shared_topic)
    with member() as first:
        first.assign([one])
        first.commit({one: 7})
    again = member()
    again.assign([one, two])
    assert (again.position(one), again.position(two)) == (7, 0)
    latest = member(auto_offset_reset="latest")
    latest.assign([one, two])
    assert (latest.position(one), latest.position(two)) == (7, 10)
    strict = member(auto_offset_reset="none")
    strict.assign([one, two])
    with pytest.raises(OffsetOutOfRangeError, match=f"no position for {two}"):
        poll_until([strict], lambda: False)


@pytest.mark.behaviour("C6")
def test_positions_are_committed_in_the_background(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 8)
    consumer, observer = member(auto_commit_interval_ms=50), member()
    consumer.subscribe([shared_topic])
    poll_count(consumer, 8)
    everything = partitions(shared_topic)
    goal = {tp: OffsetAndMetadata(2, leader_epoch=0) for tp in everything}
    poll_until([consumer], lambda: observer.committed(everything) == goal)


@pytest.mark.behaviour("C6")
def test_closing_commits_and_a_restart_continues_there(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 8)
    with member(max_poll_records=5) as first:
        first.subscribe([shared_topic])
        seen = [record.value for record in poll_count(first, 5)]
    second = member()
    second.subscribe([shared_topic])
    seen += [record.value for record in poll_count(second, 3)]
    assert sorted(seen) == sorted(b"%d" % n for n in range(8))


@pytest.mark.behaviour("C6")
def test_a_rebalance_commits_first_so_that_no_record_is_read_twice(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    fill_topic(group_producer, shared_topic, 8)
    first, second = member(), member()
    first.subscribe([shared_topic])
    seen = poll_count(first, 8)
    second.subscribe([shared_topic])
    seen += poll_until([first, second], lambda: shared(first, second) == [2, 2])
    fill_topic(group_producer, shared_topic, 4)
    deadline = []
    while len(seen) < 12:
        seen += poll_until([first, second], lambda: deadline.append(0) or len(deadline) % 5 == 0)  # type: ignore[func-returns-value]
    assert len({(record.partition, record.offset) for record in seen}) == len(seen) == 12


@pytest.mark.behaviour("C6", "C19")
def test_commit_waits_and_commit_async_calls_back(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 8)
    tp, *_ = partitions(shared_topic)
    consumer = member(enable_auto_commit=False)
    consumer.subscribe([shared_topic])
    poll_count(consumer, 8)
    consumer.commit()
    assert consumer.committed([tp]) == {tp: OffsetAndMetadata(2, leader_epoch=0)}
    heard: list[Any] = []
    consumer.commit_async({tp: OffsetAndMetadata(1, "half-way")}, lambda *reported: heard.append(reported))
    poll_until([consumer], lambda: heard)
    assert heard == [({tp: OffsetAndMetadata(1, "half-way")}, None)]
    assert consumer.committed([tp]) == {tp: OffsetAndMetadata(1, "half-way")}


@pytest.mark.behaviour("C7")
def test_a_heartbeat_no_shorter_than_the_session_is_refused(member: Members) -> None:
    with pytest.raises(ConfigError, match=r"heartbeat.interval.ms = 6000: must be below session.timeout.ms = 6000"):
        member(heartbeat_interval_ms=6000, session_timeout_ms=6000)


@pytest.mark.behaviour("C7")
def test_a_heartbeat_of_more_than_a_third_of_the_session_is_warned_of(
    member: Members, caplog: pytest.LogCaptureFixture
) -> None:
    member(heartbeat_interval_ms=3001, session_timeout_ms=9000)
    assert "heartbeat.interval.ms = 3001 is more than a third of session.timeout.ms = 9000" in caplog.text


@pytest.mark.behaviour("C7")
def test_a_session_outside_the_bounds_of_the_broker_is_an_error_that_names_them(
    member: Members, shared_topic: str
) -> None:
    consumer = member(session_timeout_ms=99, heartbeat_interval_ms=9)
    consumer.subscribe([shared_topic])
    with pytest.raises(KafkaError, match=r"session.timeout.ms = 99: outside the broker's group.min.session.timeout.ms"):
        poll_until([consumer], lambda: False)


@pytest.mark.behaviour("C7", "C8")
def test_heartbeats_keep_the_membership_during_long_processing(member: Members, shared_topic: str) -> None:
    busy, other = member(session_timeout_ms=1000), member()
    busy.subscribe([shared_topic])
    poll_until([busy], busy.assignment)
    place = busy.group_metadata()
    with busy.trace() as trace:
        eventually(lambda: beaten_for(trace) > 1.5)  # the user at work, for longer than a session
    assert busy.group_metadata() == place
    busy.poll(0)
    busy.commit({TopicPartition(shared_topic, 0): 0})
    assert other.assignment() == set()


@pytest.mark.behaviour("C9")
def test_exceeding_the_max_poll_interval_logs_both_remedies_and_the_next_poll_rejoins(
    member: Members, shared_topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard = RecordingListener()
    slow, quick = member(max_poll_interval_ms=200), member()
    slow.subscribe([shared_topic], heard)
    quick.subscribe([shared_topic])
    poll_until([slow, quick], lambda: shared(slow, quick) == [2, 2])
    poll_until([quick], lambda: shared(quick) == [4])
    warnings = [r.getMessage() for r in caplog.records if "poll() was not called for max.poll" in r.getMessage()]
    assert warnings  # more than one, where even the first share came too late
    assert warnings[0].endswith("Raise max.poll.interval.ms, or lower max.poll.records")
    with pytest.raises(CommitFailedError, match="this consumer was removed from its group"):
        slow.commit({TopicPartition(shared_topic, 0): 0})
    poll_until([slow, quick], lambda: shared(slow, quick) == [2, 2])
    assert ("lost", [0, 1]) in heard.reported or ("lost", [2, 3]) in heard.reported


@pytest.mark.behaviour("C10")
def test_closing_leaves_at_once(member: Members, shared_topic: str) -> None:
    going, staying = member(session_timeout_ms=60_000), member(session_timeout_ms=60_000)
    for consumer in (going, staying):
        consumer.subscribe([shared_topic])
    poll_until([going, staying], lambda: shared(going, staying) == [2, 2])
    going.close()
    going.close()
    poll_until([staying], lambda: shared(staying) == [4], timeout=10)


@pytest.mark.behaviour("C10")
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_member_that_closes_during_a_rebalance_leaves_at_once(
    member: Members, shared_topic: str, group_admin: Admin, group_id: str, strategy: str
) -> None:
    long = {"session_timeout_ms": 60_000, "partition_assignment_strategy": strategy}
    staying, going = member(**long), member(**long)
    for consumer in (staying, going):
        consumer.subscribe([shared_topic])
    poll_until([staying, going], lambda: shared(staying, going) == [2, 2])
    coordinator = going._core.coordinator
    assert coordinator is not None
    going.enforce_rebalance("of a whim")
    poll_until([going], lambda: coordinator.state is ClassicMemberState.PREPARING_REBALANCE)
    going.close()
    poll_until([staying], lambda: shared(staying) == [4])
    (described,) = group_admin.describe_consumer_groups([group_id]).values()
    assert [each.client_id for each in described.members] == [staying.client_id]


@pytest.mark.behaviour("C11")
def test_the_broker_names_a_member_after_its_client(member: Members, group_id: str, shared_topic: str) -> None:
    consumer = member()
    consumer.subscribe([shared_topic])
    poll_until([consumer], consumer.assignment)
    place = consumer.group_metadata()
    assert re.fullmatch(rf"consumer-{group_id}-\d+-[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}", place.member_id)
    assert (place.group_id, place.generation_id, place.group_instance_id) == (group_id, 1, None)
    assert member(group_instance_id="till").client_id == f"consumer-{group_id}-till"


def test_a_member_sends_its_rack(member: Members, group_broker: Broker, group_id: str, shared_topic: str) -> None:
    consumer = member(client_rack="west")
    consumer.subscribe([shared_topic])
    poll_until([consumer], lambda: shared(consumer) == [4])
    with Wire(group_broker.bootstrap_servers) as wire:
        (described,) = describe(wire, group_id).members
    assert decode_subscription(described.member_metadata).rack_id == "west"


@pytest.mark.behaviour("C12")
def test_a_static_member_that_returns_keeps_its_partitions_without_a_rebalance(
    member: Members, shared_topic: str
) -> None:
    staying, heard = member(), RecordingListener()
    going = member(group_instance_id="till")
    staying.subscribe([shared_topic], heard)
    going.subscribe([shared_topic])
    poll_until([staying, going], lambda: shared(staying, going) == [2, 2])
    had, reported = going.assignment(), list(heard.reported)
    generation = staying.group_metadata().generation_id
    going.close()
    back = member(group_instance_id="till")
    back.subscribe([shared_topic])
    poll_until([staying, back], lambda: back.assignment() == had)
    assert heard.reported == reported
    assert staying.group_metadata().generation_id == back.group_metadata().generation_id == generation


@pytest.mark.behaviour("C12")
def test_a_second_consumer_of_the_same_instance_id_fences_the_first(member: Members, shared_topic: str) -> None:
    first = member(group_instance_id="till")
    first.subscribe([shared_topic])
    poll_until([first], first.assignment)
    second = member(group_instance_id="till")
    second.subscribe([shared_topic])
    poll_until([second], second.assignment)
    with pytest.raises(FencedInstanceIdError, match=r"uses the same group.instance.id = 'till'"):
        poll_until([first], lambda: False)
    with pytest.raises(FencedInstanceIdError):
        first.poll(0)


@pytest.mark.behaviour("C14")
def test_a_partition_has_one_owner_and_surplus_members_wait_their_turn(member: Members, shared_topic: str) -> None:
    members = [member() for _ in range(6)]
    for consumer in members:
        consumer.subscribe([shared_topic])
    poll_until(members, lambda: sorted(shared(*members)) == [0, 0, 1, 1, 1, 1])
    assert set.union(*(consumer.assignment() for consumer in members)) == set(partitions(shared_topic))
    owner = next(consumer for consumer in members if consumer.assignment())
    owner.close()
    members.remove(owner)
    poll_until(members, lambda: sorted(shared(*members)) == [0, 1, 1, 1, 1])


@pytest.mark.behaviour("C15", "C19")
def test_a_changed_subscription_starts_a_rebalance(member: Members, shared_topic: str, group_admin: Admin) -> None:
    another = fresh_name()
    group_admin.create_topics([NewTopic(another, 2)])
    one, two = member(), member()
    for consumer in (one, two):
        consumer.subscribe([shared_topic])
    poll_until([one, two], lambda: shared(one, two) == [2, 2])
    two.subscribe([another])
    assert two.subscription() == {another}
    poll_until([one, two], lambda: shared(one, two) == [4, 2])
    two.unsubscribe()
    assert (two.subscription(), two.assignment()) == (set(), set())
    with pytest.raises(IllegalStateError, match=r"call subscribe\(\) or assign\(\)"):
        two.poll(0)
    two.subscribe([shared_topic])
    poll_until([one, two], lambda: shared(one, two) == [2, 2])


@pytest.mark.behaviour("C15", "C19")
def test_a_new_topic_that_matches_the_pattern_is_assigned_too(member: Members, group_admin: Admin) -> None:
    stem = fresh_name()
    group_admin.create_topics([NewTopic(f"{stem}-a", 2)])
    consumer = member(metadata_max_age_ms=100)
    consumer.subscribe(re.compile(f"{stem}-.*"))
    poll_until([consumer], lambda: len(consumer.assignment()) == 2)
    group_admin.create_topics([NewTopic(f"{stem}-b", 3), NewTopic(f"not-{stem}-c", 3)])
    poll_until([consumer], lambda: len(consumer.assignment()) == 5)
    assert consumer.subscription() == {f"{stem}-a", f"{stem}-b"}


@pytest.mark.behaviour("C16")
def test_the_eager_protocol_revokes_all_partitions_and_logs_it(
    member: Members, shared_topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ottla")
    heard, one, two = RecordingListener(), member(), member()
    one.subscribe([shared_topic], heard)
    poll_until([one], one.assignment)
    two.subscribe([shared_topic])
    poll_until([one, two], lambda: shared(one, two) == [2, 2])
    assert heard.reported[:2] == [("assigned", [0, 1, 2, 3]), ("revoked", [0, 1, 2, 3])]
    assert heard.reported[2][0] == "assigned"
    assert (
        "Updating assignment with\n"
        f"\tAssigned partitions:                       [{', '.join(map(str, sorted(one.assignment())))}]\n"
        "\tCurrent owned partitions:                  []\n"
        f"\tAdded partitions (assigned - owned):       [{', '.join(map(str, sorted(one.assignment())))}]\n"
        "\tRevoked partitions (owned - assigned):     []"
    ) in caplog.text
    assert "joining the group" in caplog.text


@pytest.mark.behaviour("C17")
def test_a_listener_may_commit_revoked_partitions(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 8)
    one, two = member(enable_auto_commit=False), member()
    one.subscribe([shared_topic], on_revoked=lambda _: one.commit())
    poll_count(one, 8)
    two.subscribe([shared_topic])
    poll_until([one, two], lambda: shared(one, two) == [2, 2])
    assert two.committed(partitions(shared_topic)) == {
        tp: OffsetAndMetadata(2, leader_epoch=0) for tp in partitions(shared_topic)
    }


@pytest.mark.behaviour("C17", "C19")
def test_a_listener_may_seek_newly_assigned_partitions(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    def begin_at_eight(tps: list[TopicPartition]) -> None:
        for tp in tps:
            consumer.seek(tp, 8)

    fill_topic(group_producer, shared_topic, 40)
    consumer = member()
    consumer.subscribe([shared_topic], on_assigned=begin_at_eight)
    assert {record.offset for record in poll_count(consumer, 8)} == {8, 9}


def put_out(broker: Broker, consumer: Consumer) -> None:
    """An admin removes this member: the coordinator does not know it any more."""
    place = consumer.group_metadata()
    with Wire(broker.bootstrap_servers) as wire:
        answer = wire.ask(LeaveGroupRequest(place.group_id, members=[MemberIdentity(place.member_id)]), 5)
    assert (answer.error_code, answer.members[0].error_code) == (0, 0)


@pytest.mark.behaviour("C17")
def test_a_listener_is_called_for_lost_partitions_and_cannot_commit_them(
    member: Members, group_broker: Broker, shared_topic: str
) -> None:
    class Committing(RecordingListener):
        failure: Exception | None = None

        def on_partitions_lost(self, tps: list[TopicPartition]) -> None:
            super().on_partitions_lost(tps)
            try:
                consumer.commit(dict.fromkeys(tps, 3))
            except CommitFailedError as error:
                self.failure = error

    heard, consumer = Committing(), member(enable_auto_commit=False)
    consumer.subscribe([shared_topic], heard)
    poll_until([consumer], consumer.assignment)
    put_out(group_broker, consumer)
    poll_until([consumer], lambda: len(heard.reported) == 3)
    assert heard.reported == [("assigned", [0, 1, 2, 3]), ("lost", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])]
    assert heard.failure is not None
    assert consumer.committed(partitions(shared_topic)) == dict.fromkeys(partitions(shared_topic))


@pytest.mark.behaviour("C17")
def test_a_listener_without_on_partitions_lost_is_called_with_on_partitions_revoked(
    member: Members, group_broker: Broker, shared_topic: str
) -> None:
    heard: list[tuple[str, int]] = []
    consumer = member(enable_auto_commit=False)
    consumer.subscribe(
        [shared_topic],
        on_assigned=lambda tps: heard.append(("assigned", len(tps))),
        on_revoked=lambda tps: heard.append(("revoked", len(tps))),
    )
    poll_until([consumer], consumer.assignment)
    put_out(group_broker, consumer)
    poll_until([consumer], lambda: len(heard) == 3)
    assert heard == [("assigned", 4), ("revoked", 4), ("assigned", 4)]


def test_an_invalid_topic_name_is_an_error(member: Members) -> None:
    consumer = member()
    consumer.subscribe(["no name!"])
    with pytest.raises(
        InvalidTopicError, match=r"topic 'no name!' \(a name has .*\), which this consumer subscribes to"
    ):
        poll_until([consumer], lambda: False)


def test_a_missing_topic_is_logged_and_read_once_it_exists(
    member: Members, group_admin: Admin, caplog: pytest.LogCaptureFixture
) -> None:
    name = fresh_name()
    consumer = member(allow_auto_create_topics=False)
    consumer.subscribe([name])
    poll_until([consumer], lambda: f"subscribed topics have no assigned partitions topics=['{name}']" in caplog.text)
    group_admin.create_topics([NewTopic(name, 3)])
    poll_until([consumer], lambda: shared(consumer) == [3])


def test_an_exception_of_a_listener_is_raised_and_the_rebalance_continues(member: Members, shared_topic: str) -> None:
    calls: list[Any] = []

    def fail_once(assigned: Any) -> None:
        calls.append(assigned)
        if len(calls) == 1:
            raise ZeroDivisionError

    consumer = member()
    consumer.subscribe([shared_topic], on_assigned=fail_once)
    with pytest.raises(ZeroDivisionError):
        poll_until([consumer], lambda: False)
    assert consumer.assignment() == set(partitions(shared_topic))
    consumer.poll(0)


@pytest.mark.behaviour("C19")
def test_a_wakeup_during_a_join_ends_the_poll_and_not_the_join(member: Members, shared_topic: str) -> None:
    consumer = member()
    consumer.subscribe([shared_topic])
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(20)
    poll_until([consumer], consumer.assignment)


@pytest.mark.behaviour("C15")
def test_a_rebalance_can_be_requested(member: Members, shared_topic: str) -> None:
    consumer = member()
    consumer.subscribe([shared_topic])
    poll_until([consumer], consumer.assignment)
    consumer.enforce_rebalance("new weights")
    poll_until([consumer], lambda: consumer.group_metadata().generation_id == 2)


def test_ways_to_get_partitions_exclude_each_other(member: Members, shared_topic: str) -> None:
    consumer = member()
    consumer.subscribe([shared_topic])
    exclusive = r"uses subscribe\(\) with topics: call unsubscribe\(\) before"
    with pytest.raises(IllegalStateError, match=rf"{exclusive} assign\(\)"):
        consumer.assign(partitions(shared_topic))
    with pytest.raises(IllegalStateError, match=rf"{exclusive} subscribe\(\) with a pattern"):
        consumer.subscribe(re.compile(".*"))
    consumer.unsubscribe()
    consumer.assign(partitions(shared_topic))
    assert shared(consumer) == [4]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"partition_assignment_strategy": "rnage"}, "unknown assignor 'rnage'; did you mean 'range'?"),
        ({"group_id": ""}, "group.id is empty"),
        ({"group_instance_id": ""}, "group.instance.id is empty"),
    ],
)
def test_invalid_settings_are_rejected_at_once(member: Members, settings: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(error)):
        member(**settings)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("flights",), r"'flights' is one name: hand over a list"),
        ((["flights"], object()), "must have on_partitions_assigned"),
        ((re.compile(b"x"),), "matches bytes"),
    ],
)
def test_invalid_subscriptions_are_rejected_at_once(member: Members, arguments: tuple[Any, ...], error: str) -> None:
    with pytest.raises(TypeError, match=error):
        member().subscribe(*arguments)


def test_an_endless_poll_timeout_is_given_as_a_number(member: Members, shared_topic: str) -> None:
    consumer = member()
    consumer.subscribe([shared_topic])
    with pytest.raises(
        TypeError, match=r"timeout = None: must be seconds, such as 1.0; to wait for long, give a large number"
    ):
        consumer.poll(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("heard_ms", [100, 300_000])
def test_a_recreated_topic_is_read_from_its_start(
    heard_ms: int, member: Members, group_admin: Admin, group_producer: Producer, shared_topic: str
) -> None:
    fill_topic(group_producer, shared_topic, 8)
    consumer = member(metadata_max_age_ms=heard_ms, enable_auto_commit=False)
    consumer.subscribe([shared_topic])
    poll_count(consumer, 8)
    group_admin.delete_topics([shared_topic])
    group_admin.create_topics([NewTopic(shared_topic, 4)])
    with Producer(bootstrap_servers=consumer.config.bootstrap_servers) as anew:
        eventually(lambda: len(group_admin.describe_topics([shared_topic])[shared_topic].partitions) == 4)
        fill_topic(anew, shared_topic, 4)
    assert sorted(record.value for record in poll_count(consumer, 4)) == [b"0", b"1", b"2", b"3"]


def test_a_reader_of_a_range_leaves_the_offsets_of_its_group_alone(
    member: Members, shared_topic: str, group_producer: Producer, group_id: str
) -> None:
    fill_topic(group_producer, shared_topic, 8)
    tp, *_ = partitions(shared_topic)
    observer = member()
    settings = {"bootstrap.servers": observer.config.bootstrap_servers, "group.id": group_id}
    assert sum(columns.count for columns in RangeReader(settings, tp, 0, 2).columns()) == 2
    assert observer.committed([tp]) == {tp: None}


def test_iterating_over_a_subscription(member: Members, shared_topic: str, group_producer: Producer) -> None:
    fill_topic(group_producer, shared_topic, 8)
    consumer: Consumer = member()
    consumer.subscribe([shared_topic])
    values = []
    for record in consumer:
        values.append(record.value)
        if len(values) == 8:
            break
    assert len(set(values)) == 8
