"""One member of a consumer group, as a value; a new one for each change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from uuid import UUID

from msgspec import Struct, field

TopicIdPartition = tuple[UUID, int]
"""A partition: its topic's id and its index."""
PartitionEpochs = Mapping[TopicIdPartition, int]
"""Partitions, and for each the epoch in which it was given."""
NO_PARTITIONS: PartitionEpochs = MappingProxyType({})
LEAVING, LEAVING_FOR_A_WHILE = -1, -2
"""The epochs with which members leave; with the second a static member leaves temporarily."""


class MemberState(IntEnum):
    """How far a member is on its way to what it is to have; the numbers are Kafka's."""

    STABLE = 0
    """It has all that it is to have in its epoch."""
    UNREVOKED_PARTITIONS = 1
    """It has partitions to revoke, and has not acknowledged that yet."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have not given back."""
    UNKNOWN = 127
    """Written by a coordinator that knows more states."""


class ClassicMetadata(Struct, frozen=True):
    """The JoinGroup fields of a classic member."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class ConsumerMember(Struct, frozen=True):
    """A member as the coordinator knows it."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    """The topics that it reads by name."""
    regex: str = ""
    """The regular expression by which it reads topics; empty if it has none."""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    """None for a member that speaks the protocol of KIP-848."""
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: PartitionEpochs = field(default_factory=dict)
    revoking: PartitionEpochs = field(default_factory=dict)
    """The partitions that it has to revoke and may still use."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return True if it has reached this epoch and has nothing to revoke or wait for."""
        return self.state is MemberState.STABLE and self.epoch == epoch


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[UUID, list[int]]:
    """Partitions by topic, all in order."""
    topics: dict[UUID, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        topics.setdefault(topic_id, []).append(partition)
    return topics
