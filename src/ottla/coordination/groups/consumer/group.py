"""A consumer group: its members, their target assignments and their current assignments.

Only records change it. The rules about which request causes which records are elsewhere.

`owners` and `instances` are derived from the members and stored, because every heartbeat needs them: with 1,000 members a scan of all
would cost more than everything else. `check` compares them with the members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from msgspec.structs import replace

from ottla.coordination.groups.consumer import records as kept
from ottla.coordination.groups.consumer.member import (
    NO_PARTITIONS,
    ClassicMetadata,
    ConsumerMember,
    MemberState,
    PartitionEpochs,
    TopicIdPartition,
)
from ottla.coordination.groups.consumer.records import ConsumerGroupRecord
from ottla.protocol.schema import Message

MemberAssignment = frozenset[TopicIdPartition]
NO_ASSIGNMENT: MemberAssignment = frozenset()


class Resolved(NamedTuple):
    """The topics that a regular expression matched."""

    topics: frozenset[str]
    version: int
    """The version of the image of topics that was searched."""
    wall_ms: int


class ConsumerGroupState(Enum):
    EMPTY = "Empty"
    """No members."""
    ASSIGNING = "Assigning"
    """Members or topics have changed, and the assignment has not."""
    RECONCILING = "Reconciling"
    """Members are on their way to the assignment."""
    STABLE = "Stable"
    """Everybody has what it is to have."""

    def __str__(self) -> str:
        return self.value


class ConsumerGroup:
    """The state of one group; `copy()` before trying anything."""

    kind = "consumer"
    protocol_type = "consumer"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        """Grows with every change of members, of what they want, and of the topics that they read."""
        self.metadata_hash = 0
        """The digest of the topics when the assignment was last computed for them."""
        self.assignment_epoch = 0
        """The group's epoch for which the targets were worked out."""
        self.members: dict[str, ConsumerMember] = {}
        """By member id, in order of arrival."""
        self.targets: dict[str, MemberAssignment] = {}
        """The target assignment of each member."""
        self.regexes: dict[str, Resolved] = {}
        """Regular expression → the topics it was found to match."""
        self.owners: dict[TopicIdPartition, str] = {}
        """The member that has a partition, or has not revoked it yet."""
        self.instances: dict[str, str] = {}
        """Name of a static member → its id."""
        self.has_partition_metadata = False
        """True if the log has a record that `metadata_hash` replaces today."""
        self._names: frozenset[str] | None = None

    def __str__(self) -> str:
        return self.group_id

    def copy(self) -> ConsumerGroup:
        """Another one, for which anything can be tried."""
        other = ConsumerGroup(self.group_id)
        for name, value in vars(self).items():
            setattr(other, name, dict(value) if isinstance(value, dict) else value)
        return other

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def instance(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the static member of that name."""
        member_id = None if instance_id is None else self.instances.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target(self, member_id: str) -> MemberAssignment:
        """Return the target assignment of a member."""
        return self.targets.get(member_id, NO_ASSIGNMENT)

    def names_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics that a member reads, by name and by pattern."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        return member.topics if resolved is None else member.topics | resolved.topics

    @property
    def names(self) -> frozenset[str]:
        """The topics that any member reads."""
        if self._names is None:
            self._names = frozenset().union(*map(self.names_of, self.members.values()))
        return self._names

    def is_waiting_for_others(self, member: ConsumerMember) -> bool:
        """Return True if a partition of its target still belongs to another member."""
        return any(
            partition in self.owners for partition in self.target(member.member_id) if partition not in member.assigned
        )

    def apply(self, record: ConsumerGroupRecord) -> None:
        APPLIES[type(record.key)](self, record.key, record.value)

    def check(self) -> None:
        """Assert what holds between any two steps."""
        assert self.assignment_epoch <= self.epoch
        assert self.targets.keys() <= self.members.keys(), "only members have targets"
        held: dict[TopicIdPartition, str] = {}
        for name, member in self.members.items():
            assert member.member_id == name
            assert member.epoch <= self.epoch
            assert bool(member.revoking) == (member.state is MemberState.UNREVOKED_PARTITIONS)
            assert not member.assigned.keys() & member.revoking.keys()
            for partition in (*member.assigned, *member.revoking):
                assert held.setdefault(partition, name) == name, f"{partition} has two owners"
        assert held == self.owners
        instances = {member.instance_id: name for name, member in self.members.items() if member.instance_id}
        assert instances == self.instances
        used = {member.regex for member in self.members.values() if member.regex}
        assert self.regexes.keys() <= used, "only used expressions are kept"

    def _epoch(self, key: kept.GroupEpochKey, value: kept.GroupEpochValue | None) -> None:
        if value is not None:
            self.epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def _partition_metadata(self, key: Message, value: Message | None) -> None:
        self.has_partition_metadata = value is not None

    def _member(self, key: kept.MemberMetadataKey, value: kept.MemberMetadataValue | None) -> None:
        self._names = None
        before = self.members.get(key.member_id)
        if before is not None and before.instance_id is not None:
            self.instances.pop(before.instance_id, None)
        if value is None:
            self.members.pop(key.member_id, None)
            return
        member = with_metadata(before or ConsumerMember(key.member_id), value)
        self.members[key.member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = key.member_id

    def _target_epoch(self, key: kept.TargetEpochKey, value: kept.TargetEpochValue | None) -> None:
        self.assignment_epoch = 0 if value is None else value.assignment_epoch

    def _target(self, key: kept.TargetMemberKey, value: kept.TargetMemberValue | None) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = frozenset(
                (each.topic_id, partition) for each in value.topic_partitions for partition in each.partitions
            )

    def _current(self, key: kept.CurrentMemberKey, value: kept.CurrentMemberValue | None) -> None:
        before = self.members.get(key.member_id)
        if before is None:
            return  # a tombstone that outlived its member, while the log was compacted
        # A record may be replayed twice, or name a partition that another member has by now: after compaction only the last record
        # of each member remains, not in the original order.
        for partition in (*before.assigned, *before.revoking):
            if self.owners.get(partition) == key.member_id:
                del self.owners[partition]
        member = with_current_assignment(before, value)
        self.members[key.member_id] = member
        for partition in (*member.assigned, *member.revoking):
            self.owners[partition] = key.member_id

    def _regex(self, key: kept.RegularExpressionKey, value: kept.RegularExpressionValue | None) -> None:
        self._names = None
        if value is None:
            self.regexes.pop(key.regular_expression, None)
        else:
            self.regexes[key.regular_expression] = Resolved(frozenset(value.topics), value.version, value.timestamp)


APPLIES: Mapping[type[Message], Callable[[ConsumerGroup, Any, Any], None]] = {
    kept.GroupEpochKey: ConsumerGroup._epoch,
    kept.PartitionMetadataKey: ConsumerGroup._partition_metadata,
    kept.MemberMetadataKey: ConsumerGroup._member,
    kept.TargetEpochKey: ConsumerGroup._target_epoch,
    kept.TargetMemberKey: ConsumerGroup._target,
    kept.CurrentMemberKey: ConsumerGroup._current,
    kept.RegularExpressionKey: ConsumerGroup._regex,
}
"""The effect of each kind of record."""


def with_metadata(member: ConsumerMember, value: kept.MemberMetadataValue) -> ConsumerMember:
    """Return a member with the values of a metadata record."""
    classic = value.classic_member_metadata
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=frozenset(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=None if classic is None else classic_of(classic),
    )


def classic_of(said: kept.ClassicMemberMetadata) -> ClassicMetadata:
    """Return the part of a member's metadata that concerns the classic protocol."""
    protocols = tuple((each.name, bytes(each.metadata)) for each in said.supported_protocols)
    return ClassicMetadata(said.session_timeout_ms, protocols)


def with_current_assignment(member: ConsumerMember, value: kept.CurrentMemberValue | None) -> ConsumerMember:
    """Return a member with its assignment, which is empty without a value."""
    if value is None:
        return replace(
            member,
            epoch=-1,
            previous_epoch=-1,
            state=MemberState.STABLE,
            assigned=NO_PARTITIONS,
            revoking=NO_PARTITIONS,
        )
    known = value.state in list(MemberState)
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=owned(value.assigned_partitions, value.member_epoch),
        revoking=owned(value.partitions_pending_revocation, value.member_epoch),
    )


def owned(partitions: Iterable[kept.OwnedPartitions], epoch: int) -> PartitionEpochs:
    """Return the partitions with their epochs. Records from before per-partition epochs get the member's epoch."""
    return {
        (each.topic_id, partition): since
        for each in partitions
        for partition, since in zip(
            each.partitions, each.assignment_epochs or [epoch] * len(each.partitions), strict=False
        )
    }
