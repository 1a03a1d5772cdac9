"""Which offsets a group gets in the target.

Only forward, and only where the group has no member: a reader that has moved over keeps what it committed there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.mirror.ledger import Ledger, Read
from ottla.model import TopicPartition


class GroupPlan(NamedTuple):
    """Of one group, by the target's names."""

    offsets: dict[TopicPartition, int]
    """What is to be committed."""
    repeats: int
    """So many offsets at most are read again by a reader that moves over now."""


def plan_group(
    committed: Mapping[TopicPartition, int],
    there: Mapping[TopicPartition, int],
    ledger: Ledger,
    read_to: Read,
    renamed: Callable[[str], str],
) -> GroupPlan:
    """From what the group committed in the source, and what it has in the target."""
    plan: dict[TopicPartition, int] = {}
    repeats = 0
    for partition, offset in committed.items():
        translated = ledger.of(partition).translated(offset, read_to(partition))
        place = TopicPartition(renamed(partition.topic), partition.partition)
        if translated is None or translated.offset < there.get(place, 0):
            continue
        repeats += translated.repeats
        if translated.offset != there.get(place):
            plan[place] = translated.offset
    return GroupPlan(plan, repeats)
