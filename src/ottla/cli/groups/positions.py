"""A group's committed offsets, the ends of its partitions, and the lag between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.cli.groups.rows import owners_of

if TYPE_CHECKING:
    from ottla.client.admin import Admin, ConsumerGroupDescription
    from ottla.model import OffsetAndMetadata, TopicPartition


def committed_and_ends(
    admin: Admin, group: ConsumerGroupDescription
) -> tuple[dict[TopicPartition, OffsetAndMetadata], dict[TopicPartition, int]]:
    """Return the committed offsets, and the end of each partition that is committed or assigned and still exists."""
    from ottla.model import LATEST  # imported late to start faster

    committed = admin.list_consumer_group_offsets(group.group_id)
    topics = admin.list_topics(internal=True)
    existing = [tp for tp in {*committed, *owners_of(group)} if tp.topic in topics]
    found = admin.list_offsets(dict.fromkeys(existing, LATEST))
    return committed, {tp: at.offset for tp, at in found.items()}


def lag_of_each(admin: Admin, group: ConsumerGroupDescription) -> dict[TopicPartition, int | None]:
    """Return the number of records after each partition's committed offset; None if nothing is committed."""
    committed, ends = committed_and_ends(admin, group)
    partitions = sorted({*committed, *owners_of(group)})
    return {tp: ends[tp] - committed[tp].offset if tp in committed and tp in ends else None for tp in partitions}
