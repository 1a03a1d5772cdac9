"""A classic group: a value, made anew by each change.

What every member must know of its group is here, and what can be worked out from its members; who may do what, and
what follows from it, is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from ottla.coordination.groups.classic.member import CONSUMER, ClassicMember
from ottla.coordination.groups.classic.state import NEXT, ClassicGroupState


class ClassicGroup(Struct, frozen=True):
    """A group of members that share out partitions, or that just keeps offsets."""

    kind: ClassVar[str] = "classic"
    group_id: str
    state: ClassicGroupState = ClassicGroupState.EMPTY
    generation: int = 0
    protocol_type: str = ""
    """What kind of group it is, "consumer" for consumers; empty for one that never had members."""
    protocol_name: str | None = None
    """The protocol chosen for this generation, such as "range"."""
    leader: str | None = None
    members: Mapping[str, ClassicMember] = field(default_factory=dict)
    """By id, in the order in which they came."""
    pending: frozenset[str] = frozenset()
    """Ids given away, and not used yet to join."""
    pending_sync: frozenset[str] = frozenset()
    """Members whose sync for this generation has not come."""
    topics: frozenset[str] | None = None
    """What the members of this generation read; None where nobody can say."""
    changed_ms: int = -1
    """When it came into its state, by the calendar."""
    # From here on what only a rebalance under way needs; the log does not have it.
    initial_delay_left: float | None = None
    """Seconds by which the first rebalance of a group may still be put off; None in every other rebalance."""
    has_new_member: bool = False
    """Whether members have come since it was put off last."""

    def __str__(self) -> str:
        return self.group_id

    @property
    def blank(self) -> bool:
        """Whether there is nothing to remember of it."""
        return not (self.generation or self.members or self.pending or self.protocol_type)

    def moved(self, state: ClassicGroupState, now_ms: int) -> ClassicGroup:
        """The group in its next state."""
        assert state in NEXT[self.state], f"{self.group_id}: {self.state} is never followed by {state}"
        return replace(self, state=state, changed_ms=now_ms)

    def with_member(self, member: ClassicMember) -> ClassicGroup:
        """With a new member, or one in a new form; the first one leads and says what kind of group it is."""
        pending = self.pending - {member.member_id} if self.pending else self.pending
        leader = self.leader if self.leader is not None else member.member_id
        return replace(self, members={**self.members, member.member_id: member}, pending=pending, leader=leader)

    def without(self, *member_ids: str) -> ClassicGroup:
        """Without some members; if the leader is among them, the first of those who stay leads."""
        left = {name: member for name, member in self.members.items() if name not in member_ids}
        # Any of those who stay can lead; the longest there is the least likely to go next.
        leader = self.leader if self.leader in left else next(iter(left), None)
        return replace(
            self,
            members=left,
            leader=leader,
            pending=self.pending.difference(member_ids),
            pending_sync=self.pending_sync.difference(member_ids),
        )

    def replace_static_member(self, old_id: str, member: ClassicMember) -> ClassicGroup:
        """A static member under its new id, in its old place, with its old part."""
        members = {(member.member_id if name == old_id else name): each for name, each in self.members.items()}
        members[member.member_id] = member
        pending_sync = (
            self.pending_sync - {old_id} | {member.member_id} if old_id in self.pending_sync else self.pending_sync
        )
        leader = member.member_id if self.leader == old_id else self.leader
        return replace(self, members=members, leader=leader, pending_sync=pending_sync)

    def instance(self, instance_id: str | None) -> ClassicMember | None:
        """The static member of that name."""
        if instance_id is None:
            return None
        return next((member for member in self.members.values() if member.instance_id == instance_id), None)

    @property
    def rebalance_timeout(self) -> float:
        """Seconds that a rebalance may take: what the most patient member grants."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0) / 1000

    @property
    def joining(self) -> int:
        """How many wait for the join to end."""
        return sum(1 for member in self.members.values() if member.joining)

    @property
    def everybody_joined(self) -> bool:
        """Whether nobody is to be waited for."""
        return not self.pending and all(member.joining for member in self.members.values())

    def candidates(self) -> frozenset[str]:
        """The protocols that every member supports."""
        count = Counter(name for member in self.members.values() for name in {name for name, _ in member.protocols})
        return frozenset(name for name, voices in count.items() if voices == len(self.members))

    def supports(self, protocol_type: str, names: set[str]) -> bool:
        """Whether one with these protocols fits in; an empty group takes everybody who has any."""
        if not self.members:
            return bool(protocol_type and names)
        return protocol_type == self.protocol_type and not names.isdisjoint(self.candidates())

    def elected_protocol(self) -> str:
        """The protocol with the most votes; where two have as many, the one that was named first."""
        candidates = self.candidates()
        # `most_common` keeps the order of first votes, so the choice does not depend on chance.
        return Counter(member.vote(candidates) for member in self.members.values()).most_common(1)[0][0]

    def read_topics(self, protocol: str | None) -> frozenset[str] | None:
        """All topics that the members want by `protocol`; None where one of them does not say."""
        if self.protocol_type != CONSUMER:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            found = member.subscription(protocol)
            if found is None:
                return None
            topics |= found
        return frozenset(topics)

    def reads(self, topic: str) -> bool:
        """Whether members read `topic`; a group of consumers that does not say what it reads may read anything."""
        return self.protocol_type == CONSUMER if self.topics is None else topic in self.topics

    def changed(self, **fields: Any) -> ClassicGroup:
        """With some fields as given."""
        return replace(self, **fields)

    def check(self) -> None:
        """Assert what holds between any two steps."""
        instances = [member.instance_id for member in self.members.values() if member.instance_id is not None]
        assert len(instances) == len(set(instances)), "each static member is there once"
        assert all(name == member.member_id for name, member in self.members.items())
        assert self.leader in self.members if self.members else self.leader is None
        assert self.pending.isdisjoint(self.members)
        assert self.pending_sync <= self.members.keys()
        assert self.initial_delay_left is None or self.state is ClassicGroupState.PREPARING_REBALANCE
        CHECKS[self.state](self)


def check_empty(group: ClassicGroup) -> None:
    """An empty group waits for nobody."""
    assert not group.members
    assert not group.pending_sync


def check_preparing(group: ClassicGroup) -> None:
    """Nobody waits for an assignment, and none is asked for, while members join."""
    assert not group.pending_sync
    assert not any(member.syncing for member in group.members.values())


def check_completing(group: ClassicGroup) -> None:
    """Members have a common protocol, and nobody joins any more."""
    assert group.members
    assert group.protocol_name in group.candidates()
    assert not any(member.joining for member in group.members.values())


def check_stable(group: ClassicGroup) -> None:
    """As before, and nobody waits."""
    check_completing(group)
    assert not any(member.waits for member in group.members.values())


def check_dead(group: ClassicGroup) -> None:
    """There is no such group."""
    raise AssertionError(f"{group.group_id} is dead, and still here")


CHECKS = {
    ClassicGroupState.EMPTY: check_empty,
    ClassicGroupState.PREPARING_REBALANCE: check_preparing,
    ClassicGroupState.COMPLETING_REBALANCE: check_completing,
    ClassicGroupState.STABLE: check_stable,
    ClassicGroupState.DEAD: check_dead,
}
