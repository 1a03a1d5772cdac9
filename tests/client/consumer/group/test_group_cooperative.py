from __future__ import annotations

import logging
from typing import Any

import pytest

from ottla import Admin, Broker, NewTopic, Producer, TopicPartition
from ottla.errors import AssignmentError
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tests.broker.wire import Wire
from tests.client.conftest import fresh_name
from tests.client.consumer.conftest import Members, fill_topic, partitions, poll_until, shared
from tests.client.consumer.group.test_group import RecordingListener

COOPERATIVE: dict[str, Any] = {"partition_assignment_strategy": "cooperative-sticky"}


@pytest.mark.behaviour("C16")
def test_a_cooperative_rebalance_revokes_only_moving_partitions_and_logs_two_rounds(
    member: Members, shared_topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ottla")
    heard, one, two = RecordingListener(), member(**COOPERATIVE), member(**COOPERATIVE)
    one.subscribe([shared_topic], heard)
    poll_until([one], one.assignment)
    caplog.clear()
    two.subscribe([shared_topic])
    poll_until([one, two], lambda: shared(one, two) == [2, 2])
    poll_until([one, two], lambda: len([name for name, _ in heard.reported if name == "assigned"]) == 3)
    moved = [tp.partition for tp in sorted(two.assignment())]
    assert heard.reported == [("assigned", [0, 1, 2, 3]), ("revoked", moved), ("assigned", []), ("assigned", [])] or (
        heard.reported
        == [("assigned", [0, 1, 2, 3]), ("revoked", moved), ("assigned", []), ("assigned", []), ("assigned", [])]
    )
    mine, both = one.assignment(), set(partitions(shared_topic))
    for owned, revoked in ((both, two.assignment()), (mine, set())):
        assert (
            "Updating assignment with\n"
            f"\tAssigned partitions:                       {format_partitions(mine)}\n"
            f"\tCurrent owned partitions:                  {format_partitions(owned)}\n"
            "\tAdded partitions (assigned - owned):       []\n"
            f"\tRevoked partitions (owned - assigned):     {format_partitions(revoked)}"
        ) in caplog.text
    assert f"{format_partitions(two.assignment())} were revoked for other members" in caplog.text


@pytest.mark.behaviour("C16")
def test_retained_partitions_are_read_while_the_group_rebalances(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    """The coordinator waits for a member that does not poll: the rebalance lasts as long as the test wants."""
    one, slow, third = (member(**COOPERATIVE) for _ in range(3))
    for consumer in (one, slow):
        consumer.subscribe([shared_topic])
    poll_until([one, slow], lambda: shared(one, slow) == [2, 2])
    third.subscribe([shared_topic])
    coordinator = one._core.coordinator
    assert coordinator is not None
    poll_until([one, third], lambda: coordinator.state.value == "preparing rebalance")
    kept = one.assignment()
    for round_ in range(3):
        fill_topic(group_producer, shared_topic, 4)
        seen: list[Any] = []
        while len(seen) < len(kept):
            seen += one.poll(1)
            assert coordinator.state.value == "preparing rebalance", f"round {round_}"
        assert {TopicPartition(r.topic, r.partition) for r in seen} == kept
    poll_until([one, slow, third], lambda: sorted(shared(one, slow, third)) == [1, 1, 2])


@pytest.mark.behaviour("C16")
def test_no_record_is_read_twice_when_partitions_move_during_consumption(
    member: Members, shared_topic: str, group_producer: Producer
) -> None:
    members = [member(**COOPERATIVE)]
    seen: list[Any] = []
    for count in range(1, 5):
        members[-1].subscribe([shared_topic])
        fill_topic(group_producer, shared_topic, 40)
        seen += poll_until(members, lambda: sum(shared(*members)) == 4 and min(shared(*members)) > 0)
        if count < 4:
            members.append(member(**COOPERATIVE))
    rounds = 0

    def all_are_here() -> bool:
        nonlocal rounds
        rounds += 1
        return rounds > 8

    seen += poll_until(members, all_are_here)
    offsets = [(record.partition, record.offset) for record in seen]
    assert len(offsets) == len(set(offsets)) == 160


@pytest.mark.behaviour("C15")
def test_new_partitions_are_assigned_within_the_metadata_max_age(
    member: Members, shared_topic: str, group_broker: Broker
) -> None:
    consumer = member(metadata_max_age_ms=100)
    consumer.subscribe([shared_topic])
    poll_until([consumer], lambda: shared(consumer) == [4])
    with Wire(group_broker.bootstrap_servers) as wire:
        wire.ask(CreatePartitionsRequest([CreatePartitionsTopic(shared_topic, 6)], 1000))
    poll_until([consumer], lambda: shared(consumer) == [6])


@pytest.mark.behaviour("C15")
def test_a_leader_detects_new_partitions_of_topics_that_only_others_subscribe_to(
    member: Members, shared_topic: str, group_admin: Admin
) -> None:
    another = fresh_name()
    group_admin.create_topics([NewTopic(another, 2)])
    leader, other = member(), member()
    leader.subscribe([shared_topic])
    poll_until([leader], leader.assignment)
    other.subscribe([another])
    poll_until([leader, other], lambda: shared(leader, other) == [4, 2])


def test_an_assignor_of_three_arguments_is_enough(member: Members, shared_topic: str) -> None:
    def all_to_the_first(wanted: Any, counts: Any, owned: Any) -> Any:
        return {min(wanted): [(topic, n) for topic, count in counts.items() for n in range(count)]}

    one, two = (member(partition_assignment_strategy=[all_to_the_first]) for _ in range(2))
    for consumer in (one, two):
        consumer.subscribe([shared_topic])
    poll_until([one, two], lambda: sorted(shared(one, two)) == [0, 4])


def test_an_error_of_an_assignor_is_raised_by_the_leader_of_the_group(member: Members, shared_topic: str) -> None:
    def wrong(wanted: Any, counts: Any, owned: Any) -> Any:
        return {"nobody": [(shared_topic, 0)]}

    consumer = member(partition_assignment_strategy=[wrong])
    consumer.subscribe([shared_topic])
    with pytest.raises(AssignmentError, match="assignor 'wrong' named member 'nobody', which is not in the group"):
        poll_until([consumer], lambda: False)


def test_members_without_a_common_assignor_are_refused_with_a_remedy(member: Members, shared_topic: str) -> None:
    one = member(partition_assignment_strategy="range")
    one.subscribe([shared_topic])
    poll_until([one], one.assignment)
    two = member(partition_assignment_strategy="roundrobin")
    two.subscribe([shared_topic])
    with pytest.raises(Exception, match=r"INCONSISTENT_GROUP_PROTOCOL: the members of group .* no assignor in common"):
        poll_until([two], lambda: False)


def format_partitions(tps: set[TopicPartition]) -> str:
    return f"[{', '.join(map(str, sorted(tps)))}]"
