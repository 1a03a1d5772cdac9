"""The cooperative sticky assignor: as sticky, but nobody stops reading what they keep (KIP-429).

A partition that goes from one member to another is given to nobody at first. Its owner then gives it up, and the
rebalance that follows gives it to the new one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ottla.client.consumer.assignors.assignor import NO_GENERATION, Assignment, RebalanceProtocol, Subscription
from ottla.client.consumer.assignors.claims import Claim
from ottla.client.consumer.assignors.sticky import Shares, share_out
from ottla.client.metadata.cluster import Cluster
from ottla.model import TopicPartition


class CooperativeStickyAssignor:
    """Even and sticky, by the cooperative protocol."""

    name = "cooperative-sticky"
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    version = 0

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return self._generation.to_bytes(4, "big", signed=True)

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        self._generation = generation

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        claims = {member: claim(subscription) for member, subscription in subscriptions.items()}
        shares, moving = share_out(cluster, subscriptions, claims)
        if moving is None:
            moving = what_moves(shares, subscriptions)
        return {
            member: Assignment([tp for tp in partitions if moving.get(tp) != member])
            for member, partitions in shares.items()
        }


def claim(subscription: Subscription) -> Claim:
    """What a member owns; since when, older ones tell by their user data."""
    since: int | None = subscription.generation_id
    if since == NO_GENERATION:
        data = subscription.user_data
        since = None if data is None else int.from_bytes(data[:4], "big", signed=True) if len(data) >= 4 else -1
    return Claim(subscription.owned_partitions, since)


def what_moves(shares: Shares, subscriptions: Mapping[str, Subscription]) -> dict[TopicPartition, str]:
    """The partitions that somebody gets and somebody else has, with who gets them."""
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member, partitions in shares.items():
        owned = set(subscriptions[member].owned_partitions)
        added.update(dict.fromkeys((tp for tp in partitions if tp not in owned), member))
        revoked |= owned.difference(partitions)
    return {tp: member for tp, member in added.items() if tp in revoked}
