"""Plan the offsets of a group in the target.

 Offsets only move forward, and only while the group has no members in the target: a consumer that has moved over keeps
its own commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.mirror.ledger import Ledger, Read
from ottla.model import TopicPartition


class GroupPlan(NamedTuple):
    """The plan of one group, with the target's topic names."""

    offsets: dict[TopicPartition, int]
    """The offsets to commit."""
    repeats: int
    """The maximum number of offsets that a consumer reads again if it moves over now."""


def plan_group(
    committed: Mapping[TopicPartition, int],
    there: Mapping[TopicPartition, int],
    ledger: Ledger,
    read_to: Read,
    target_name: Callable[[str], str],
) -> GroupPlan:
    """Return the plan from the committed offsets in the source and those in the target (`there`)."""
    plan: dict[TopicPartition, int] = {}
    repeats = 0
    for partition, offset in committed.items():
        translated = ledger.for_partition(partition).translate(offset, read_to(partition))
        place = TopicPartition(target_name(partition.topic), partition.partition)
        if translated is None or translated.offset < there.get(place, 0):
            continue
        repeats += translated.repeats
        if translated.offset != there.get(place):
            plan[place] = translated.offset
    return GroupPlan(plan, repeats)
