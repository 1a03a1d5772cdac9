"""A share group: its members, their assignments, and the partitions whose state exists (KIP-932). Only records change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from ottla.coordination.groups.consumer.member import TopicIdPartition, by_topic
from ottla.coordination.groups.share import records as kept
from ottla.coordination.groups.share.records import ShareGroupRecord
from ottla.protocol.schema import Message

Partitions = frozenset[TopicIdPartition]
NO_PARTITIONS: Partitions = frozenset()


class ShareGroupState(Enum):
    """Members of a share group share partitions, so none waits for another and there is no state in between."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"
    """The state in a description of a group that does not exist."""

    def __str__(self) -> str:
        return self.value


class ShareMember(Struct, frozen=True):
    """A member as the coordinator knows it."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = -1
    assigned: Partitions = NO_PARTITIONS


class StateProgress(Struct, frozen=True):
    """The partitions whose state the share coordinator creates, has, and deletes for this group."""

    initializing: Partitions = NO_PARTITIONS
    initialized: Partitions = NO_PARTITIONS
    deleting: frozenset[UUID] = frozenset()
    names: Mapping[UUID, str] = {}
    """The names of all these topics, which may not exist any more."""

    @property
    def is_empty(self) -> bool:
        return not (self.initializing or self.initialized or self.deleting)

    def without_topics(self, topic_ids: Iterable[UUID]) -> StateProgress:
        gone = frozenset(topic_ids)
        return replace(
            self,
            initializing=frozenset(each for each in self.initializing if each[0] not in gone),
            initialized=frozenset(each for each in self.initialized if each[0] not in gone),
            deleting=self.deleting - gone,
        )


class ShareGroup:
    """The state of one group; `copy()` before trying anything."""

    kind = "share"
    protocol_type = "share"

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, ShareMember] = {}
        self.targets: dict[str, Partitions] = {}
        self.progress = StateProgress()
        self._names: frozenset[str] | None = None

    def __str__(self) -> str:
        return self.group_id

    def copy(self) -> ShareGroup:
        """Another one, for which anything can be tried."""
        other = ShareGroup(self.group_id)
        for name, value in vars(self).items():
            setattr(other, name, dict(value) if isinstance(value, dict) else value)
        return other

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    @property
    def names(self) -> frozenset[str]:
        """The topics that any member reads."""
        if self._names is None:
            self._names = frozenset().union(*(member.topics for member in self.members.values()))
        return self._names

    def target(self, member_id: str) -> Partitions:
        return self.targets.get(member_id, NO_PARTITIONS)

    def apply(self, record: ShareGroupRecord) -> None:
        APPLIES[type(record.key)](self, record.key, record.value)

    def check(self) -> None:
        """Assert what holds between any two steps."""
        assert self.assignment_epoch <= self.epoch
        assert self.targets.keys() <= self.members.keys()
        assert not self.progress.initializing & self.progress.initialized
        for name, member in self.members.items():
            assert member.member_id == name
            assert member.epoch <= self.epoch

    def _epoch(self, key: kept.ShareGroupMetadataKey, value: kept.ShareGroupMetadataValue | None) -> None:
        if value is not None:
            self.epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def _member(self, key: kept.ShareGroupMemberMetadataKey, value: kept.ShareGroupMemberMetadataValue | None) -> None:
        self._names = None
        if value is None:
            self.members.pop(key.member_id, None)
            return
        self.members[key.member_id] = replace(
            self.members.get(key.member_id) or ShareMember(key.member_id),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
        )

    def _target_epoch(
        self,
        key: kept.ShareGroupTargetAssignmentMetadataKey,
        value: kept.ShareGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        self.assignment_epoch = 0 if value is None else value.assignment_epoch

    def _target(
        self, key: kept.ShareGroupTargetAssignmentMemberKey, value: kept.ShareGroupTargetAssignmentMemberValue | None
    ) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = partitions_in(value.topic_partitions)

    def _current(
        self,
        key: kept.ShareGroupCurrentMemberAssignmentKey,
        value: kept.ShareGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        member = self.members.get(key.member_id)
        if member is None:
            return  # a tombstone that outlived its member, while the log was compacted
        if value is None:
            value = kept.ShareGroupCurrentMemberAssignmentValue(-1, -1)
        self.members[key.member_id] = replace(
            member,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned=partitions_in(value.assigned_partitions),
        )

    def _progress(
        self,
        key: kept.ShareGroupStatePartitionMetadataKey,
        value: kept.ShareGroupStatePartitionMetadataValue | None,
    ) -> None:
        self.progress = StateProgress() if value is None else progress_of(value)


APPLIES: Mapping[type[Message], Callable[[ShareGroup, Any, Any], None]] = {
    kept.ShareGroupMetadataKey: ShareGroup._epoch,
    kept.ShareGroupMemberMetadataKey: ShareGroup._member,
    kept.ShareGroupTargetAssignmentMetadataKey: ShareGroup._target_epoch,
    kept.ShareGroupTargetAssignmentMemberKey: ShareGroup._target,
    kept.ShareGroupCurrentMemberAssignmentKey: ShareGroup._current,
    kept.ShareGroupStatePartitionMetadataKey: ShareGroup._progress,
}
"""The effect of each kind of record."""


def partitions_in(topics: Iterable[Any]) -> Partitions:
    """Return the partitions of a record's list of topics."""
    return frozenset((each.topic_id, index) for each in topics for index in each.partitions)


def progress_of(value: kept.ShareGroupStatePartitionMetadataValue) -> StateProgress:
    return StateProgress(
        partitions_in(value.initializing_topics),
        partitions_in(value.initialized_topics),
        frozenset(each.topic_id for each in value.deleting_topics),
        {
            each.topic_id: each.topic_name
            for topics in (value.initializing_topics, value.initialized_topics, value.deleting_topics)
            for each in topics
        },
    )


def progress_value(progress: StateProgress) -> kept.ShareGroupStatePartitionMetadataValue:
    """Return the record of the states of a group's partitions."""
    names = progress.names
    return kept.ShareGroupStatePartitionMetadataValue(
        [
            kept.TopicPartitionsInfo(topic, names[topic], found)
            for topic, found in by_topic(progress.initializing).items()
        ],
        [
            kept.TopicPartitionsInfo(topic, names[topic], found)
            for topic, found in by_topic(progress.initialized).items()
        ],
        [kept.TopicInfo(topic, names[topic]) for topic in sorted(progress.deleting)],
    )
