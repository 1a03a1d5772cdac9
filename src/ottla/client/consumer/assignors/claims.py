"""What the members of a group say they own, and who is believed.

Pure. A claim counts less than one of a later generation; two of one generation contradict each other, and neither
counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from ottla.client.consumer.assignors.assignor import NO_GENERATION, Subscription
from ottla.client.consumer.assignors.java_order import in_hash_order
from ottla.model import TopicPartition


class Claim(NamedTuple):
    partitions: Sequence[TopicPartition]
    generation: int | None
    """None where it tells none."""

    @property
    def since(self) -> int:
        """The generation to hold against those of others."""
        return NO_GENERATION if self.generation is None else self.generation


class Claims(Struct):
    """The members' claims, sorted out."""

    owned: dict[str, dict[TopicPartition, None]] = field(default_factory=dict)
    """What each member owns, of topics that somebody wants; in the order of Java's map of members."""
    contested: set[TopicPartition] = field(default_factory=set)
    """Claimed by several of one generation."""
    last_generation: int = NO_GENERATION


def sort_out(
    claims: Mapping[str, Claim], subscriptions: Mapping[str, Subscription], counts: Mapping[str, int]
) -> Claims:
    """Who owns what; partitions that are not there any more are nobody's."""
    found = Claims()
    owner: dict[TopicPartition, str] = {}
    for member in in_hash_order(subscriptions):
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
    claims: Mapping[str, Claim], last_generation: int, members: Collection[str]
) -> dict[TopicPartition, str]:
    """For each partition, who says to have had it in a generation before the last; the latest of them."""
    former: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        claim = claims[member]
        if claim.since < last_generation:
            for tp in claim.partitions:
                if tp not in former or claim.since > former[tp][0]:
                    former[tp] = (claim.since, member)
    return {tp: member for tp, (_, member) in former.items()}
