"""The sticky assignor: balanced counts, and members keep their partitions.

It uses the eager protocol: members give up all partitions before they join, so each states its previous partitions and
their generation in the user data.
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
from ottla.client.consumer.assignors.claims import OwnershipClaim, former_owners, resolve_claims
from ottla.client.consumer.assignors.racks import Nearness
from ottla.client.consumer.assignors.sticky_general import GeneralAssignment
from ottla.client.consumer.assignors.sticky_uniform import UniformAssignment
from ottla.client.consumer.assignors.wire import flatten_topics, group_by_topic
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.model import TopicPartition
from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.sticky_user_data import StickyUserData, decode, encode

Shares = dict[str, list[TopicPartition]]
NOTHING = OwnershipClaim((), None)


class StickyAssignor:
    """Balanced and sticky, with the eager protocol."""

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

    def assign(self, cluster: MetadataSnapshot, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        claims = {member: claim(subscription.user_data) for member, subscription in subscriptions.items()}
        shares, _ = compute_shares(cluster, subscriptions, claims)
        return {member: Assignment(partitions) for member, partitions in shares.items()}


def compute_shares(
    cluster: MetadataSnapshot, subscriptions: Mapping[str, Subscription], claimed: Mapping[str, OwnershipClaim]
) -> tuple[Shares, dict[TopicPartition, str] | None]:
    """Return the partitions of each member, and those that move with their new owner; None if the moves are not known."""
    if not subscriptions:
        return {}, {}
    counts = partition_counts(cluster, subscriptions)
    claims = resolve_claims(claimed, subscriptions, counts)
    nearness = Nearness.from_cluster(cluster, counts, subscriptions)
    if len({frozenset(subscription.topics) for subscription in subscriptions.values()}) == 1:
        uniform = UniformAssignment(counts, claims, nearness)
        return uniform.build(), uniform.moving
    former = former_owners(claimed, claims.last_generation, claims.owned)
    return GeneralAssignment(counts, claims, former, subscriptions, nearness).build(), None


def user_data(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """Encode the partitions of a member and their generation."""
    return encode(StickyUserData(group_by_topic(sorted(partitions)), generation))


def claim(data: bytes | None) -> OwnershipClaim:
    """Decode the user data of a member; empty if it cannot be decoded."""
    if not data:
        return NOTHING
    try:
        decoded, version = decode(data)
    except MalformedError:
        return NOTHING
    return OwnershipClaim(flatten_topics(decoded.previous_assignment), decoded.generation if version else None)
