"""Values of the classic protocol: a group, its state, and its members. Each change makes a new value.

`ClassicGroup` knows what follows from its own fields: which protocol is elected, whether all members have joined, which topics
they read. Which request changes what is in `decision`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import Enum
from typing import Any, ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from ottla.errors import ErrorCode, few_of
from ottla.model import TopicPartition
from ottla.protocol import errors
from ottla.protocol.messages import consumer_protocol as wire

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata of the protocols that a member supports, the preferred one first."""
CONSUMER = "consumer"
"""The protocol type with metadata that names topics."""


class ClassicGroupState(Enum):
    """The states of a group, with Kafka's names, as DescribeGroups and ListGroups return them."""

    EMPTY = "Empty"
    """No members; the group may have committed offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """The coordinator waits for members to join."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All members have joined; the coordinator waits for the leader's assignment."""
    STABLE = "Stable"
    """Every member has an assignment."""
    DEAD = "Dead"
    """The state of a group that does not exist; the state machine has no such group."""

    def __str__(self) -> str:
        return self.value


TRANSITIONS: Mapping[ClassicGroupState, frozenset[ClassicGroupState]] = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE, ClassicGroupState.DEAD}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset({ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.EMPTY}),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset(
        {ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE}
    ),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.DEAD: frozenset(),
}
"""The allowed next states."""


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """A member as the coordinator knows it."""

    member_id: str
    instance_id: str | None
    """The `group.instance.id` of a static member."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    join_ticket: int = 0
    """The ticket of its JoinGroup that has no response yet; 0 if there is none."""
    sync_ticket: int = 0
    """The ticket of its SyncGroup that has no response yet; 0 if there is none."""
    is_new: bool = False
    """True until its first JoinGroup is answered; it cannot send heartbeats before."""
    _topics: dict[str, frozenset[str] | None] = dataclass_field(default_factory=dict, compare=False, repr=False)
    # The subscription by protocol name, read when it is first needed.

    @property
    def has_joined(self) -> bool:
        """True if its JoinGroup waits for the rebalance."""
        return bool(self.join_ticket)

    @property
    def is_waiting(self) -> bool:
        """True if it waits for a response, and therefore cannot send heartbeats."""
        return bool(self.join_ticket or self.sync_ticket)

    def metadata(self, protocol: str | None) -> bytes:
        """Return its metadata for a protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """Return the candidate that the member prefers."""
        return next(name for name, _ in self.protocols if name in candidates)

    def subscription(self, protocol: str | None) -> frozenset[str] | None:
        """Return the topics that it subscribes to, by the consumer protocol; None if they cannot be read."""
        if protocol is None:
            return None
        if protocol not in self._topics:
            self._topics[protocol] = subscribed_topics(self.metadata(protocol))
        return self._topics[protocol]


class ClassicGroup(Struct, frozen=True):
    """A group of members that divide partitions among themselves, or a group that only commits offsets."""

    kind: ClassVar[str] = "classic"
    group_id: str
    state: ClassicGroupState = ClassicGroupState.EMPTY
    generation: int = 0
    protocol_type: str = ""
    """The kind of group, "consumer" for consumers; empty for a group that never had members."""
    protocol_name: str | None = None
    """The protocol of this generation, such as "range"."""
    leader: str | None = None
    members: Mapping[str, ClassicMember] = field(default_factory=dict)
    """By member id, in the order of arrival."""
    pending: frozenset[str] = frozenset()
    """Member ids that were assigned and not used to join yet (KIP-394)."""
    pending_sync: frozenset[str] = frozenset()
    """Members that have not sent SyncGroup in this generation."""
    topics: frozenset[str] | None = None
    """The topics that this generation reads; None if they are unknown."""
    changed_ms: int = -1
    """The wall-clock time of the last state transition."""
    # The next two concern only a rebalance in progress; the log does not have them.
    initial_delay_left: float | None = None
    """Seconds for which the first rebalance of an empty group may still be delayed; None in every other rebalance (KIP-134)."""
    has_new_member: bool = False
    """True if members have arrived since the delay was last extended."""

    def __str__(self) -> str:
        return self.group_id

    @property
    def is_blank(self) -> bool:
        """True if the group has nothing that has to be remembered."""
        return not (self.generation or self.members or self.pending or self.protocol_type)

    def changed(self, **fields: Any) -> ClassicGroup:
        """Return the group with other fields."""
        return replace(self, **fields)

    def with_state(self, state: ClassicGroupState, now_ms: int) -> ClassicGroup:
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state} is never followed by {state}"
        return replace(self, state=state, changed_ms=now_ms)

    def with_member(self, member: ClassicMember) -> ClassicGroup:
        """Return the group with a member added or replaced; the first member becomes the leader."""
        pending = self.pending - {member.member_id} if self.pending else self.pending
        leader = self.leader if self.leader is not None else member.member_id
        return replace(self, members={**self.members, member.member_id: member}, pending=pending, leader=leader)

    def without(self, *member_ids: str) -> ClassicGroup:
        """Return the group without some members. If the leader is removed the longest-standing member becomes the leader."""
        gone = frozenset(member_ids)
        left = {name: member for name, member in self.members.items() if name not in gone}
        leader = self.leader if self.leader in left else next(iter(left), None)
        return replace(
            self,
            members=left,
            leader=leader,
            pending=self.pending.difference(member_ids),
            pending_sync=self.pending_sync.difference(member_ids),
        )

    def replace_static_member(self, old_id: str, member: ClassicMember) -> ClassicGroup:
        """Return the group with a static member under a new member id, in its old place and with its old assignment."""
        members = {(member.member_id if name == old_id else name): each for name, each in self.members.items()}
        members[member.member_id] = member
        pending_sync = (
            self.pending_sync - {old_id} | {member.member_id} if old_id in self.pending_sync else self.pending_sync
        )
        leader = member.member_id if self.leader == old_id else self.leader
        return replace(self, members=members, leader=leader, pending_sync=pending_sync)

    def static_member(self, instance_id: str | None) -> ClassicMember | None:
        """Return the static member with that instance id."""
        if instance_id is None:
            return None
        return next((member for member in self.members.values() if member.instance_id == instance_id), None)

    def member_error(self, member_id: str, instance_id: str | None) -> int:
        """Return UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if another member uses the instance id (KIP-345)."""
        if instance_id is None:
            return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID
        known = self.static_member(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if known.member_id == member_id else ErrorCode.FENCED_INSTANCE_ID

    def generation_error(self, generation: int, member_id: str, instance_id: str | None) -> int:
        """Return the member's error, or ILLEGAL_GENERATION for a member that missed a rebalance."""
        error = self.member_error(member_id, instance_id)
        if not error and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    @property
    def rebalance_timeout(self) -> float:
        """The largest rebalance timeout of a member, in seconds."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0) / 1000

    @property
    def joined_count(self) -> int:
        """The number of members with a JoinGroup that waits for the rebalance."""
        return sum(1 for member in self.members.values() if member.has_joined)

    @property
    def is_join_complete(self) -> bool:
        """True if every member has joined and no assigned member id is unused."""
        return not self.pending and all(member.has_joined for member in self.members.values())

    def candidates(self) -> frozenset[str]:
        """Return the protocols that every member supports."""
        count = Counter(name for member in self.members.values() for name in {name for name, _ in member.protocols})
        return frozenset(name for name, supporters in count.items() if supporters == len(self.members))

    def is_supporting(self, protocol_type: str, names: set[str]) -> bool:
        """Return True if a member with these protocols may join; an empty group accepts any protocol."""
        if not self.members:
            return bool(protocol_type and names)
        return protocol_type == self.protocol_type and not names.isdisjoint(self.candidates())

    def elected_protocol(self) -> str:
        """Return the protocol with the most votes; of protocols with equal votes, the one that was listed first."""
        candidates = self.candidates()
        # `most_common` keeps the order of the first votes, so that the choice is deterministic.
        return Counter(member.vote(candidates) for member in self.members.values()).most_common(1)[0][0]

    def subscribed_topics(self, protocol: str | None) -> frozenset[str] | None:
        """Return all topics of the members' subscriptions; None if a subscription cannot be read."""
        if self.protocol_type != CONSUMER:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            found = member.subscription(protocol)
            if found is None:
                return None
            topics |= found
        return frozenset(topics)

    def can_read(self, topic: str) -> bool:
        """Return True if members read the topic; a group of consumers with unknown subscriptions may read any topic."""
        return self.protocol_type == CONSUMER if self.topics is None else topic in self.topics

    def check(self) -> None:
        """Assert the invariants that hold between two decisions."""
        instances = [member.instance_id for member in self.members.values() if member.instance_id is not None]
        assert len(instances) == len(set(instances)), "an instance id is used once"
        assert all(name == member.member_id for name, member in self.members.items())
        assert self.leader in self.members if self.members else self.leader is None
        assert self.pending.isdisjoint(self.members)
        assert self.pending_sync <= self.members.keys()
        assert self.initial_delay_left is None or self.state is ClassicGroupState.PREPARING_REBALANCE
        match self.state:
            case ClassicGroupState.EMPTY:
                assert not self.members
                assert not self.pending_sync
            case ClassicGroupState.PREPARING_REBALANCE:
                assert not self.pending_sync
                assert not any(member.sync_ticket for member in self.members.values())
            case ClassicGroupState.COMPLETING_REBALANCE | ClassicGroupState.STABLE:
                assert self.members
                assert self.protocol_name in self.candidates()
                assert not any(member.join_ticket for member in self.members.values())
                is_stable = self.state is ClassicGroupState.STABLE
                assert not (is_stable and any(member.sync_ticket for member in self.members.values()))
            case ClassicGroupState.DEAD:
                raise AssertionError(f"{self.group_id} is dead and was not removed")


# Metadata of the consumer protocol. Only the first fields of a subscription are needed here: a version and the topics' names.


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Return the topics of a subscription; None if the bytes are malformed, since clients may send any bytes."""
    if len(metadata) < 6:
        return None
    count = int.from_bytes(metadata[2:6], "big", signed=True)
    position = 6
    topics = []
    for _ in range(count):
        start = position + 2
        size = int.from_bytes(metadata[position:start], "big", signed=True)
        position = start + size
        if size < 0 or position > len(metadata):
            return None
        topics.append(metadata[start:position])
    try:
        return frozenset(topic.decode() for topic in topics)
    except UnicodeDecodeError:
        return None


def owned_partitions(metadata: bytes) -> frozenset[TopicPartition]:
    """Return the partitions that a member owned when it joined; the empty set if the bytes are malformed."""
    try:
        return partitions_in(wire.decode(wire.ConsumerProtocolSubscription, metadata).owned_partitions)
    except errors.MalformedError:
        return frozenset()


def assigned_partitions(assignment: bytes) -> frozenset[TopicPartition]:
    """Return the partitions of an assignment; the empty set if the bytes are malformed."""
    try:
        return partitions_in(wire.decode(wire.ConsumerProtocolAssignment, assignment).assigned_partitions)
    except errors.MalformedError:
        return frozenset()


def partitions_in(topics: Iterable[wire.TopicPartition]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(each.topic, partition) for each in topics for partition in each.partitions)


# Phrases for log lines.


def format_members(members: Sequence[str], most: int = 10) -> str:
    """Return the first few member ids as text."""
    return few_of(members, most)


def as_named(member_id: str, instance_id: str | None) -> str:
    """Return a member's id, and its instance id if it has one, as the subject of a sentence."""
    return member_id if instance_id is None else f"{member_id}, which is instance {instance_id},"


def format_reason(reason: str | None) -> str:
    """Return a client's reason (KIP-800) as the end of a sentence; an empty text if there is none."""
    return f": {reason}" if reason else ""
