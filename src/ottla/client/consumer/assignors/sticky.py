"""The sticky assignor: even numbers, and members keep what they had.

It is eager: members give everything up before they join, so that each tells by user data what it had, and since when.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ottla.client.consumer.assignors.assignor import (
    NO_GENERATION,
    Assignment,
    RebalanceProtocol,
    Subscription,
    partition_counts,
)
from ottla.client.consumer.assignors.claims import Claim, former_owners, sort_out
from ottla.client.consumer.assignors.racks import Nearness
from ottla.client.consumer.assignors.sticky_general import GeneralAssignment
from ottla.client.consumer.assignors.sticky_uniform import UniformAssignment
from ottla.client.consumer.assignors.wire import by_topic, flat
from ottla.client.metadata.cluster import Cluster
from ottla.model import TopicPartition
from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.sticky_user_data import StickyUserData, decode, encode

Shares = dict[str, list[TopicPartition]]
NOTHING = Claim((), None)


class StickyAssignor:
    """Even and sticky, by the eager protocol."""

    name = "sticky"
    supported_protocols = (RebalanceProtocol.EAGER,)
    version = 1

    def __init__(self) -> None:
        self._mine: Sequence[TopicPartition] | None = None
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return None if self._mine is None else user_data(self._mine, self._generation)

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        self._mine, self._generation = tuple(assignment.partitions), generation

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        claims = {member: claim(subscription.user_data) for member, subscription in subscriptions.items()}
        shares, _ = share_out(cluster, subscriptions, claims)
        return {member: Assignment(partitions) for member, partitions in shares.items()}


def share_out(
    cluster: Cluster, subscriptions: Mapping[str, Subscription], claimed: Mapping[str, Claim]
) -> tuple[Shares, dict[TopicPartition, str] | None]:
    """Who gets what, and what of that goes from one owner to another, with the new one; None: not known."""
    if not subscriptions:
        return {}, {}
    counts = partition_counts(cluster, subscriptions)
    claims = sort_out(claimed, subscriptions, counts)
    nearness = Nearness.of(cluster, counts, subscriptions)
    if len({frozenset(subscription.topics) for subscription in subscriptions.values()}) == 1:
        uniform = UniformAssignment(counts, claims, nearness)
        return uniform.build(), uniform.moving
    former = former_owners(claimed, claims.last_generation, claims.owned)
    return GeneralAssignment(counts, claims, former, subscriptions, nearness).build(), None


def user_data(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """What a member had, and since when."""
    return encode(StickyUserData(by_topic(sorted(partitions)), generation))


def claim(data: bytes | None) -> Claim:
    """What a member tells by its user data; nothing where that cannot be read."""
    if not data:
        return NOTHING
    try:
        decoded, version = decode(data)
    except MalformedError:
        return NOTHING
    return Claim(flat(decoded.previous_assignment), decoded.generation if version else None)
