"""The interface of an assignor, which assigns the partitions of the subscribed topics to the members of a group.

Values and one Protocol. The group's leader runs the assignor; the members' preferences decide which one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.model import TopicPartition

NO_GENERATION = -1


class RebalanceProtocol(IntEnum):
    """When members give up partitions at the start of a rebalance (KIP-429)."""

    EAGER = 0
    """All partitions, before the member joins."""
    COOPERATIVE = 1
    """Only partitions that another member receives, after the assignment says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """The subscription of one member, its owned partitions and its properties."""

    topics: Sequence[str] = ()
    user_data: bytes | None = None
    """Data that the member's assignor of the same name added."""
    owned_partitions: Sequence[TopicPartition] = ()
    """Partitions that the member owns and keeps unless reassigned; empty with the eager protocol."""
    generation_id: int = NO_GENERATION
    """The generation in which it was assigned them; -1 if unknown."""
    rack_id: str | None = None
    """`client.rack`."""
    group_instance_id: str | None = None
    """`group.instance.id`; a field of JoinGroup, not of the member's own bytes."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions assigned to one member."""

    partitions: Sequence[TopicPartition] = ()
    user_data: bytes | None = None


class Assignor(Protocol):
    """Assigns partitions.

    An object belongs to one consumer, and one thread uses it at a time: `assign` runs in the heartbeat thread, the
    other methods in the user's thread.
    """

    @property
    def name(self) -> str:
        """The name that members agree on. Assignors of one name must behave the same."""

    @property
    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """The rebalance protocols that the assignor supports."""

    @property
    def version(self) -> int:
        """The version of its user data."""

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """Return the data to add to this member's subscription."""

    def assign(self, cluster: MetadataSnapshot, subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assignment]:
        """Return an assignment for each member id of `subscriptions`.

        Each partition gets one owner, or none if no member subscribes to it.
        """

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Handle the assignment of this member after a rebalance, and its generation."""


def partition_counts(cluster: MetadataSnapshot, subscriptions: Mapping[str, Subscription]) -> dict[str, int]:
    """Return the number of partitions of every known topic with a subscriber."""
    wanted = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
    known = {topic: len(cluster.topics[topic].partitions) for topic in wanted if topic in cluster.topics}
    return {topic: count for topic, count in known.items() if count}


def instance_sort_key(member: str, subscription: Subscription) -> tuple[bool, bytes]:
    """Return a sort key: static members first, by instance id, so that a restart changes nothing (KIP-345)."""
    instance = subscription.group_instance_id
    return (instance is None, java_sort_key(member if instance is None else instance))


def java_sort_key(text: str) -> bytes:
    """Return a sort key that orders texts as Java does, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
