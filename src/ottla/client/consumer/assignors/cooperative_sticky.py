"""The cooperative sticky assignor: like sticky, but members keep reading the partitions they keep (KIP-429).

A partition that moves is assigned to no member at first. Its owner gives it up, and a second rebalance assigns it to
the new owner.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ottla.client.consumer.assignors.assignor import NO_GENERATION, Assignment, RebalanceProtocol, Subscription
from ottla.client.consumer.assignors.claims import OwnershipClaim
from ottla.client.consumer.assignors.sticky import Shares, compute_shares
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.model import TopicPartition


class CooperativeStickyAssignor:
    """Balanced and sticky, with the cooperative protocol."""

    name = "cooperative-sticky"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    version = 0

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return self._generation.to_bytes(4, "big", signed=True)

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        self._generation = generation

    def assign(self, cluster: MetadataSnapshot, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        claims = {member: claim(subscription) for member, subscription in subscriptions.items()}
        shares, moving = compute_shares(cluster, subscriptions, claims)
        if moving is None:
            moving = find_moves(shares, subscriptions)
        return {
            member: Assignment([tp for tp in partitions if moving.get(tp) != member])
            for member, partitions in shares.items()
        }


def claim(subscription: Subscription) -> OwnershipClaim:
    """Return the partitions that a member owns; older clients state the generation in their user data."""
    since: int | None = subscription.generation_id
    if since == NO_GENERATION:
        data = subscription.user_data
        since = None if data is None else int.from_bytes(data[:4], "big", signed=True) if len(data) >= 4 else -1
    return OwnershipClaim(subscription.owned_partitions, since)


def find_moves(shares: Shares, subscriptions: Mapping[str, Subscription]) -> dict[TopicPartition, str]:
    """Return the partitions that move from one member to another, with their new owner."""
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, partitions in shares.items():
        owned = set(subscriptions[member].owned_partitions)
        added.update(dict.fromkeys((tp for tp in partitions if tp not in owned), member))
        revoked |= owned.difference(partitions)
    return {tp: member for tp, member in added.items() if tp in revoked}
