"""Resolve the partitions that members claim to own. Pure.

A claim of a later generation takes precedence. If two members of one generation claim a partition, neither claim
counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from ottla.client.consumer.assignors.assignor import NO_GENERATION, Subscription
from ottla.client.consumer.assignors.java_order import sort_by_hash
from ottla.model import TopicPartition


class OwnershipClaim(NamedTuple):
    partitions: Sequence[TopicPartition]
    generation: int | None
    """None if the member states none."""

    @property
    def since(self) -> int:
        """The generation to compare with others."""
        return NO_GENERATION if self.generation is None else self.generation


class Claims(Struct):
    """The resolved claims of the members."""

    owned: dict[str, dict[TopicPartition, None]] = field(default_factory=dict)
    """The partitions that each member owns, of subscribed topics; in the order of Java's map of members."""
    contested: set[TopicPartition] = field(default_factory=set)
    """Partitions claimed by several members of one generation."""
    last_generation: int = NO_GENERATION


def resolve_claims(
    claims: Mapping[str, OwnershipClaim], subscriptions: Mapping[str, Subscription], counts: Mapping[str, int]
) -> Claims:
    """Resolve the claims. Partitions that no longer exist are ignored."""
    found = Claims()
    owner: dict[TopicPartition, str] = {}
    for member in sort_by_hash(subscriptions):
        claim = claims[member]
        found.last_generation = max(found.last_generation, claim.since)
        found.owned[member] = {}
        for tp in claim.partitions:
            if not 0 <= tp.partition < counts.get(tp.topic, 0):
                continue
            other = owner.get(tp)
            if other is None:
                found.owned[member][tp] = None
                owner[tp] = member
            elif claim.since == subscriptions[other].generation_id:
                found.contested.add(tp)
                found.owned[other].pop(tp, None)
                owner[tp] = member
            elif claim.since > subscriptions[other].generation_id:
                found.owned[other].pop(tp, None)
                found.owned[member][tp] = None
                owner[tp] = member
    return found


def former_owners(
    claims: Mapping[str, OwnershipClaim], last_generation: int, members: Collection[str]
) -> dict[TopicPartition, str]:
    """Return the latest owner of each partition in a generation before the last."""
    former: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        claim = claims[member]
        if claim.since < last_generation:
            for tp in claim.partitions:
                if tp not in former or claim.since > former[tp][0]:
                    former[tp] = (claim.since, member)
    return {tp: member for tp, (_, member) in former.items()}
