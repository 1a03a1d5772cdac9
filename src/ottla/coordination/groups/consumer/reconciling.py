"""One member on its way from what it has to what it is to have (KIP-848).

    Stable ──► UnrevokedPartitions ──► UnreleasedPartitions ──► Stable
       └──────────────────────────────────┴──────────────────────┘   whichever of the two there is no need for

Which epoch waits for what. A member with something to give back stays in its old epoch, is told the rest as its assignment, and has
its rebalance timeout to say, by a heartbeat that names what it owns, that it has let go (UnrevokedPartitions). Only then does its
member epoch become the target's: from there on it cannot commit offsets for what it gave back, and whoever gets that may read on
from the last commit. In the new epoch it is given what is free. What others have still to give back it waits for in that
epoch (UnreleasedPartitions), and each of its heartbeats looks again. So two members never have one partition: it leaves `owners`
with the record that says that it was given back, and only then comes into anybody's assignment.

Should the target change on the way, the member goes for the new one from where it is: what it was told to revoke it
revokes first, as it may have done so already.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Set
from typing import Any
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from ottla.coordination.groups.consumer.group import MemberAssignment
from ottla.coordination.groups.consumer.member import NO_PARTITIONS, ConsumerMember, MemberState, TopicIdPartition
from ottla.coordination.groups.consumer.refusal import Refused
from ottla.errors import ErrorCode


class Goal(Struct, frozen=True):
    """Where a member is to go."""

    epoch: int
    target: MemberAssignment
    topics: Set[UUID]
    """What it reads: a target for any other topic does not count."""
    taken: Container[TopicIdPartition]
    """Partitions that somebody has, maybe the member itself."""
    owned: Collection[TopicIdPartition] | None
    """What the member says that it has; None where it says nothing."""
    is_changed: bool = False
    """Whether it has just changed what it reads."""


def reconciled(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """The member one step further, or the same where it has to wait."""
    match member.state:
        case MemberState.STABLE if member.epoch == goal.epoch:
            return pruned(member, goal) if goal.is_changed else member
        case MemberState.UNREVOKED_PARTITIONS if still_owns(goal, member.revoking):
            return pruned(member, goal) if goal.is_changed else member
        case MemberState.UNKNOWN if goal.owned is None or goal.owned:
            raise Refused(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"member {member.member_id} is in a state that this broker does not know: it has to give up its partitions and join again",
            )
    return advanced(member, goal)


def advanced(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """The member towards its target."""
    target = {partition for partition in goal.target if partition[0] in goal.topics}
    kept = {partition: epoch for partition, epoch in member.assigned.items() if partition in target}
    surplus = {partition: epoch for partition, epoch in member.assigned.items() if partition not in target}
    # First give back, still in the old epoch, by which it may commit what it has read.
    if surplus and still_owns(goal, surplus):
        return moved(member, member.epoch, MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=surplus)
    # Then into the new epoch with what is free. What it has just given back itself is in `taken` until this is replayed.
    missing = target - kept.keys()
    unreleased = {partition for partition in missing if partition in goal.taken and partition not in member.revoking}
    given = dict.fromkeys(missing - unreleased, goal.epoch)
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return moved(member, goal.epoch, state, assigned={**kept, **given}, revoking=NO_PARTITIONS)


def pruned(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """The member in its epoch, without topics that it does not read any more.

    It waits for its turn, and yet must not be told partitions that it would refuse: the client knows only what it subscribes to.
    """
    kept = {partition: epoch for partition, epoch in member.assigned.items() if partition[0] in goal.topics}
    if len(kept) == len(member.assigned):
        return member
    surplus = {partition: epoch for partition, epoch in member.assigned.items() if partition not in kept}
    revoking = {**member.revoking, **surplus}
    if still_owns(goal, revoking):
        return moved(member, member.epoch, MemberState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking)
    return moved(member, member.epoch, member.state, assigned=kept)


def still_owns(goal: Goal, partitions: Container[TopicIdPartition]) -> bool:
    """Whether a member has not said that it gave these back."""
    return goal.owned is None or any(partition in partitions for partition in goal.owned)


def moved(member: ConsumerMember, epoch: int, state: MemberState, **parts: Any) -> ConsumerMember:
    """A member in its next state."""
    return replace(member, epoch=epoch, previous_epoch=member.epoch, state=state, **parts)
