"""What an assignor is: it shares the partitions of the subscribed topics out among the members of a group.

Values and one Protocol. The group's leader runs one; which one, the members' preferences decide together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from ottla.client.metadata.cluster import Cluster
from ottla.model import TopicPartition

NO_GENERATION = -1


class RebalanceProtocol(IntEnum):
    """How members give up partitions when a rebalance begins (KIP-429)."""

    EAGER = 0
    """Everything, before they join."""
    COOPERATIVE = 1
    """Only what another member is to have, and only once the assignment says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What one member wants, has, and is."""

    topics: Sequence[str] = ()
    user_data: bytes | None = None
    """What the member's assignor of the same name added."""
    owned_partitions: Sequence[TopicPartition] = ()
    """What the member has and keeps unless it is given to another; empty where the protocol is eager."""
    generation_id: int = NO_GENERATION
    """When it was given those; -1 when it does not say."""
    rack_id: str | None = None
    """`client.rack`."""
    group_instance_id: str | None = None
    """`group.instance.id`; not among the member's own bytes, JoinGroup tells it beside them."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one member is given."""

    partitions: Sequence[TopicPartition] = ()
    user_data: bytes | None = None


class Assignor(Protocol):
    """Shares partitions out. An object belongs to one consumer, and is used by one thread at a
    time: `assign` runs in the heartbeat's, the rest in the user's.
    """

    @property
    def name(self) -> str:
        """What members agree on; those of one name must agree on everything else."""

    @property
    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        """The rebalance protocols this assignor's results are right for."""

    @property
    def version(self) -> int:
        """The version of its user data."""

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """What to add to this member's subscription."""

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assignment]:
        """An assignment for each member id of `subscriptions`; each partition has one owner, or nobody wants it."""

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Told after each rebalance: what this member was given, and in which generation."""


def partition_counts(cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, int]:
    """The number of partitions of every topic that somebody wants and that is known."""
    wanted = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
    known = {topic: len(cluster.topics[topic].partitions) for topic in wanted if topic in cluster.topics}
    return {topic: count for topic, count in known.items() if count}


def by_instance(member: str, subscription: Subscription) -> tuple[bool, bytes]:
    """A sort key: static members first, by their instance id, so that a restart of one changes nothing (KIP-345)."""
    instance = subscription.group_instance_id
    return (instance is None, in_java(member if instance is None else instance))


def in_java(text: str) -> bytes:
    """A sort key that orders texts as Java does, by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
