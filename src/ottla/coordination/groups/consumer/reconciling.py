"""Reconciliation of one member: from its current assignment to its target assignment (KIP-848; Kafka's CurrentAssignmentBuilder).

    Stable ──► UnrevokedPartitions ──► UnreleasedPartitions ──► Stable
       └──────────────────────────────────┴──────────────────────┘   states that are not needed are skipped

A member with partitions to revoke stays in its previous epoch. It is assigned the remaining partitions, and has its rebalance timeout to send
a heartbeat that no longer owns the revoked ones (UnrevokedPartitions). Only then its member epoch becomes the target's. From there on it
cannot commit offsets of the revoked partitions, so their next owner can start from the last commit. In the new epoch it is assigned the
partitions that are free. For partitions that others have not revoked yet it waits in that epoch (UnreleasedPartitions), and each of
its heartbeats checks again. Two members never have the same partition: a partition is removed from `owners` by the record of its
revocation, and only then can it be assigned.

If the target changes meanwhile, the member continues from its current state towards the new target. It first completes the revocations
that it was requested to do, because it may have done them already.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Set
from typing import Any
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from ottla.coordination.groups.consumer.group import MemberAssignment
from ottla.coordination.groups.consumer.member import NO_PARTITIONS, ConsumerMember, MemberState, TopicIdPartition
from ottla.coordination.groups.consumer.refusal import RequestRejected
from ottla.errors import ErrorCode


class ReconciliationGoal(Struct, frozen=True):
    """The state that a member has to reach."""

    epoch: int
    target: MemberAssignment
    topics: Set[UUID]
    """The topics that the member reads; a target for any other topic is ignored."""
    taken: Container[TopicIdPartition]
    """Partitions that a member has, possibly this one."""
    owned: Collection[TopicIdPartition] | None
    """The partitions that the member claims to own; None if the heartbeat omits them."""
    is_changed: bool = False
    """True if this heartbeat changed the member's subscription."""


def advance_to_goal(member: ConsumerMember, goal: ReconciliationGoal) -> ConsumerMember:
    """Return the member one step further, or the same where it has to wait."""
    match member.state:
        case MemberState.STABLE if member.epoch == goal.epoch:
            return without_unsubscribed_topics(member, goal) if goal.is_changed else member
        case MemberState.UNREVOKED_PARTITIONS if can_still_use(goal, member.revoking):
            return without_unsubscribed_topics(member, goal) if goal.is_changed else member
        case MemberState.UNKNOWN if goal.owned is None or goal.owned:
            raise RequestRejected(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"member {member.member_id} is in a state that this broker does not know: it has to give up its partitions and join again",
            )
    return advance_member(member, goal)


def advance_member(member: ConsumerMember, goal: ReconciliationGoal) -> ConsumerMember:
    """Return the member towards its target."""
    target = {partition for partition in goal.target if partition[0] in goal.topics}
    kept = {partition: epoch for partition, epoch in member.assigned.items() if partition in target}
    surplus = {partition: epoch for partition, epoch in member.assigned.items() if partition not in target}
    # First give back, still in the old epoch, by which it may commit what it has read.
    if surplus and can_still_use(goal, surplus):
        return next_state(member, member.epoch, MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=surplus)
    # Then into the new epoch with what is free. What it has just given back itself is in `taken` until this is replayed.
    missing = target - kept.keys()
    unreleased = {partition for partition in missing if partition in goal.taken and partition not in member.revoking}
    given = dict.fromkeys(missing - unreleased, goal.epoch)
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return next_state(member, goal.epoch, state, assigned={**kept, **given}, revoking=NO_PARTITIONS)


def without_unsubscribed_topics(member: ConsumerMember, goal: ReconciliationGoal) -> ConsumerMember:
    """Return the member in its epoch, without topics that it no longer reads.

    It has to wait for partitions, but must not be assigned any that its client would reject because it did not subscribe to
    them.
    """
    kept = {partition: epoch for partition, epoch in member.assigned.items() if partition[0] in goal.topics}
    if len(kept) == len(member.assigned):
        return member
    surplus = {partition: epoch for partition, epoch in member.assigned.items() if partition not in kept}
    revoking = {**member.revoking, **surplus}
    if can_still_use(goal, revoking):
        return next_state(member, member.epoch, MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking)
    return next_state(member, member.epoch, member.state, assigned=kept)


def can_still_use(goal: ReconciliationGoal, partitions: Container[TopicIdPartition]) -> bool:
    """Return True if the member may still use one of these partitions, by what it claims to own."""
    return goal.owned is None or any(partition in partitions for partition in goal.owned)


def next_state(member: ConsumerMember, epoch: int, state: MemberState, **parts: Any) -> ConsumerMember:
    """Return the member in its next state."""
    return replace(member, epoch=epoch, previous_epoch=member.epoch, state=state, **parts)
