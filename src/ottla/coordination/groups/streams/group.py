"""The state of one streams group, built from its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState
from ottla.coordination.groups.streams import records as kept
from ottla.coordination.groups.streams.descriptions import NO_DESCRIPTION, DescriptionState
from ottla.coordination.groups.streams.member import (
    NO_ROLES,
    MemberState,
    StreamsMember,
    Task,
    Tasks,
    tasks_in,
)
from ottla.coordination.groups.streams.records import StreamsGroupRecord, StreamsGroupTopologyValue
from ottla.coordination.groups.streams.topology import source_topics
from ottla.protocol.schema import Message

FIRST_EPOCH = 1
"""The epoch of a group and of its assignment before the first change, as in Kafka."""
NO_EPOCH = -1
PROTOCOL = "streams"


class StreamsGroupState(Enum):
    """The states of a streams group, by Kafka's names."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Topics of the application are missing or wrong."""
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"

    def __str__(self) -> str:
        return str(self.value)


class ReportedOffsets(Struct, frozen=True):
    """The sums of changelog offsets that a member reported for its tasks, and those of their ends."""

    offsets: Mapping[Task, int] = field(default_factory=dict)
    end_offsets: Mapping[Task, int] = field(default_factory=dict)


NO_OFFSETS = ReportedOffsets()


class Volatile(Struct, frozen=True):
    """The state that a coordinator keeps in memory only, as Kafka does. Another coordinator starts without it."""

    shutdown_by: str = ""
    """The member that has requested to stop the application; empty if none has."""
    endpoint_epoch: int = 0
    """Increased when the tasks of a member with an endpoint change."""
    is_delayed: bool = False
    """True while the first assignment of the group waits for more members."""
    reported: Mapping[str, ReportedOffsets] = field(default_factory=dict)
    """By member id."""
    description: DescriptionState = NO_DESCRIPTION
    """The description of the topology (KIP-1331)."""


class StreamsGroupInMemory(NamedTuple):
    """The volatile state of a group. It is replayed and never appended."""

    group_id: str
    volatile: Volatile


class StreamsGroup:
    """The state of one group; `copy()` before trying anything."""

    kind = "streams"
    protocol_type = PROTOCOL

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = NO_EPOCH
        self.assignment_configs: Mapping[str, str] = {}
        """The settings by which the last assignment was computed."""
        self.stored_description_epoch = NO_EPOCH
        self.failed_description_epoch = NO_EPOCH
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_ms = 0
        """The wall-clock time of the last assignment; 0 if there is none."""
        self.topology: StreamsGroupTopologyValue | None = None
        self.members: dict[str, StreamsMember] = {}
        self.targets: dict[str, Tasks] = {}
        self.volatile = Volatile()
        self._sources: Mapping[str, str] | None = None

    def __str__(self) -> str:
        return self.group_id

    def copy(self) -> StreamsGroup:
        """Return a copy to which records can be applied."""
        other = StreamsGroup(self.group_id)
        for name, value in vars(self).items():
            setattr(other, name, dict(value) if isinstance(value, dict) else value)
        return other

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @property
    def sources(self) -> Mapping[str, str]:
        """The topics that active tasks read, each with the id of its subtopology."""
        if self._sources is None:
            self._sources = {} if self.topology is None else source_topics(self.topology)
        return self._sources

    def target(self, member_id: str) -> Tasks:
        return self.targets.get(member_id, NO_ROLES)

    def instance(self, instance_id: str | None) -> StreamsMember | None:
        """Return the static member with an instance id."""
        if instance_id is None:
            return None
        return next((each for each in self.members.values() if each.instance_id == instance_id), None)

    def apply(self, record: StreamsGroupRecord | StreamsGroupInMemory) -> None:
        if isinstance(record, StreamsGroupInMemory):
            self.volatile = record.volatile
        else:
            APPLIES[type(record.key)](self, record.key, record.value)

    def check(self) -> None:
        """Assert what holds between any two steps."""
        assert self.assignment_epoch <= self.epoch
        assert self.targets.keys() <= self.members.keys()
        active: set[Task] = set()
        for name, member in self.members.items():
            assert member.member_id == name
            assert member.epoch <= self.epoch
            held = member.held
            assert not (active & held.active), "a task is active at two members"
            active |= held.active
            assert member.epochs.keys() == held.active

    def _metadata(self, key: kept.StreamsGroupMetadataKey, value: kept.StreamsGroupMetadataValue | None) -> None:
        if value is None:
            return
        self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
        self.validated_topology_epoch = value.validated_topology_epoch
        self.assignment_configs = {each.key: each.value for each in value.last_assignment_configs or ()}
        self.stored_description_epoch = value.stored_description_topology_epoch
        self.failed_description_epoch = value.failed_description_topology_epoch

    def _member(
        self, key: kept.StreamsGroupMemberMetadataKey, value: kept.StreamsGroupMemberMetadataValue | None
    ) -> None:
        if value is None:
            self.members.pop(key.member_id, None)
            reported = {name: each for name, each in self.volatile.reported.items() if name != key.member_id}
            shutdown_by = self.volatile.shutdown_by if self.members else ""
            self.volatile = replace(self.volatile, reported=reported, shutdown_by=shutdown_by)
            return
        self.members[key.member_id] = replace(
            self.members.get(key.member_id) or StreamsMember(key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            endpoint=value.user_endpoint,
            tags={each.key: each.value for each in value.client_tags},
        )

    def _target_epoch(
        self,
        key: kept.StreamsGroupTargetAssignmentMetadataKey,
        value: kept.StreamsGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        self.assignment_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
        self.assignment_ms = 0 if value is None else value.assignment_timestamp

    def _target(
        self,
        key: kept.StreamsGroupTargetAssignmentMemberKey,
        value: kept.StreamsGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = Tasks(
                tasks_in(value.active_tasks), tasks_in(value.standby_tasks), tasks_in(value.warmup_tasks)
            )

    def _current(
        self,
        key: kept.StreamsGroupCurrentMemberAssignmentKey,
        value: kept.StreamsGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        member = self.members.get(key.member_id)
        if member is None:
            return  # a tombstone that outlived its member, while the log was compacted
        if value is None:
            value = kept.StreamsGroupCurrentMemberAssignmentValue(-1, -1, MemberState.STABLE)
        is_known = value.state in list(MemberState)
        self.members[key.member_id] = replace(
            member,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if is_known else MemberState.UNKNOWN,
            assigned=Tasks(tasks_in(value.active_tasks), tasks_in(value.standby_tasks), tasks_in(value.warmup_tasks)),
            revoking=Tasks(
                tasks_in(value.active_tasks_pending_revocation),
                tasks_in(value.standby_tasks_pending_revocation),
                tasks_in(value.warmup_tasks_pending_revocation),
            ),
            epochs={
                **epochs_in(value.active_tasks_pending_revocation, value.member_epoch),
                **epochs_in(value.active_tasks, value.member_epoch),
            },
        )

    def _topology(self, key: kept.StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None) -> None:
        self.topology, self._sources = value, None


APPLIES: Mapping[type[Message], Callable[[StreamsGroup, Any, Any], None]] = {
    kept.StreamsGroupMetadataKey: StreamsGroup._metadata,
    kept.StreamsGroupMemberMetadataKey: StreamsGroup._member,
    kept.StreamsGroupTargetAssignmentMetadataKey: StreamsGroup._target_epoch,
    kept.StreamsGroupTargetAssignmentMemberKey: StreamsGroup._target,
    kept.StreamsGroupCurrentMemberAssignmentKey: StreamsGroup._current,
    kept.StreamsGroupTopologyKey: StreamsGroup._topology,
}
"""The effect of each kind of record."""


def epochs_in(ids: Iterable[kept.TaskIds], epoch: int) -> dict[Task, int]:
    """Return the assignment epochs of a record's active tasks. A record without them has the member's epoch."""
    return {
        (each.subtopology_id, partition): since
        for each in ids
        for partition, since in zip(
            each.partitions, each.assignment_epochs or [epoch] * len(each.partitions), strict=False
        )
    }


def as_classic_group(group: StreamsGroup) -> ClassicGroup:
    """Return a streams group in the form that is needed to expire and delete offsets: its state and the topics that its tasks read."""
    state = ClassicGroupState.STABLE if group.members else ClassicGroupState.EMPTY
    return ClassicGroup(group.group_id, state, group.epoch, PROTOCOL, topics=frozenset(group.sources))
