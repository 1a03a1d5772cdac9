"""Bugs that the histories found, each as a minimal test."""

from __future__ import annotations

from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState
from ottla.errors import CommitFailedError
from ottla.model import OffsetAndMetadata
from tests.simulation.group_history import GroupHistory
from tests.simulation.group_member import GroupMember


def quiet_group(style: str = "auto") -> GroupHistory:
    """A group to which nothing happens by itself."""
    group = GroupHistory(0)
    group.faults.calm()
    group.style = style
    return group


def member(
    group: GroupHistory, name: str, *topics: str, strategy: str = "range", instance: str | None = None
) -> GroupMember:
    """One more consumer."""
    came = GroupMember(group, name, frozenset(topics), (strategy,), instance, group.style)
    group.members.append(came)
    return came


def until_quiet(group: GroupHistory) -> str:
    """Run for a minute; return a description of the violation."""
    group.world.run_until(group.world.now + 60.0)
    return group.trouble()


def is_stable_in(group: GroupHistory, generation: int) -> bool:
    """True if every member in that generation, or a later one, can fetch its partitions."""
    found = group.broker.group
    return (
        isinstance(found, ClassicGroup) and found.state is ClassicGroupState.STABLE and found.generation >= generation
    )


def test_a_new_subscription_during_a_join_retry_joins_with_the_new_topics() -> None:
    group = quiet_group()
    group.broker.crash(lost_batches=0, downtime=5.0)
    reader = member(group, "c1", "t")
    group.world.run_until(3.0)
    reader.subscribe(frozenset({"t", "u"}))
    assert until_quiet(group) == ""
    assert {tp.topic for tp in reader.subscriptions.assigned()} == {"t", "u"}


def test_a_commit_that_waited_for_the_coordinator_uses_the_identity_of_its_caller() -> None:
    group = quiet_group("manual")
    reader = member(group, "c1", "t")
    assert until_quiet(group) == ""
    committed = dict(group.broker.committed)
    group.broker.crash(lost_batches=0, downtime=0.3)
    offsets = {tp: OffsetAndMetadata(99) for tp in reader.subscriptions.assigned()}
    reader.coordinator.commits.commit_async(offsets)
    group.world.run_until(group.world.now + 0.1)
    late = reader.coordinator.commits.commit_async(offsets)
    reader.be_busy(3.0)
    group.world.run_until(group.world.now + 1.0)
    reader.unsubscribe()
    group.world.run_until(group.world.now + 1.0)
    assert group.broker.group is not None
    assert not group.broker.group.members
    assert until_quiet(group) == ""
    assert isinstance(late.exception(0), CommitFailedError)
    assert group.broker.committed == committed


def test_a_topic_that_grows_while_the_leader_waits_is_assigned_again() -> None:
    group = quiet_group()
    first, second = member(group, "c1", "t"), member(group, "c2", "t")
    while group.broker.group is None or group.broker.group.state is not ClassicGroupState.STABLE:
        group.world.run_until(group.world.now + 0.0001)
    group.grow("t")
    first.see_topics()
    second.see_topics()
    assert until_quiet(group) == ""


def test_partitions_pending_revocation_at_a_static_members_death_are_assigned_after_its_return() -> None:
    group = quiet_group()
    group.counts["t"] = 4
    settings = {"strategy": "cooperative-sticky"}
    first = member(group, "c1", "t", instance="i", **settings)
    assert until_quiet(group) == ""
    member(group, "c2", "t", **settings)
    while not is_stable_in(group, 2):
        group.world.run_until(group.world.now + 0.0001)
    first.crash()
    member(group, "c3", "t", instance="i", **settings)
    assert until_quiet(group) == ""
