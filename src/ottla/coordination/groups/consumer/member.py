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
"""Epochs with which members say that they go; a static member may come back."""


class MemberState(IntEnum):
    """How far a member is on its way to what it is to have; the numbers are Kafka's."""

    STABLE = 0
    """It has all that it is to have in its epoch."""
    UNREVOKED_PARTITIONS = 1
    """It is to give partitions back, and has not said that it did."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have not given back."""
    UNKNOWN = 127
    """Written by a coordinator that knows more states."""


class ClassicMetadata(Struct, frozen=True):
    """What a member has said that speaks the classic protocol."""

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
    """What it reads by name."""
    regex: str = ""
    """What it reads by pattern; empty where it has none."""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    """None for a member that speaks the protocol of KIP-848."""
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: PartitionEpochs = field(default_factory=dict)
    revoking: PartitionEpochs = field(default_factory=dict)
    """What it is to give back, and may still use."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether nothing is left to do for it in this epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[UUID, list[int]]:
    """Partitions by topic, all in order."""
    topics: dict[UUID, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        topics.setdefault(topic_id, []).append(partition)
    return topics
