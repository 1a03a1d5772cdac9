"""A group's committed offsets, the ends of its partitions, and the lag between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.cli.groups.rows import owners_of, streams_partitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.client.admin import Admin, ConsumerGroupDescription, StreamsGroupDescription
    from ottla.client.work.state.work_status import WorkStatus
    from ottla.model import OffsetAndMetadata, TopicPartition


def committed_and_ends(
    admin: Admin, group: ConsumerGroupDescription
) -> tuple[dict[TopicPartition, OffsetAndMetadata], dict[TopicPartition, int]]:
    """Return the committed offsets, and the end of each partition that is committed or assigned and still exists."""
    committed = admin.list_consumer_group_offsets(group.group_id)
    return committed, find_ends(admin, {*committed, *owners_of(group)})


def streams_committed_and_ends(
    admin: Admin, group: StreamsGroupDescription
) -> tuple[dict[TopicPartition, OffsetAndMetadata], dict[TopicPartition, int]]:
    """Return the committed offsets, and the end of each partition that is committed or read by a task and still exists."""
    committed = admin.list_streams_group_offsets(group.group_id)
    return committed, find_ends(admin, streams_partitions(group, committed))


def find_ends(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the end of each partition whose topic exists."""
    from ottla.model import LATEST  # imported late to start faster

    topics = admin.list_topics(internal=True)
    found = admin.list_offsets({tp: LATEST for tp in partitions if tp.topic in topics})
    return {tp: at.offset for tp, at in found.items()}


def lags_of(
    partitions: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int | None]:
    """Return the number of records after each partition's committed offset; None if nothing is committed, or the end is unknown."""
    return {
        tp: ends[tp] - committed[tp].offset if tp in committed and tp in ends else None for tp in sorted(partitions)
    }


def work_statuses(committed: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, WorkStatus]:
    """Return the status of each partition for which a work loop (`ottla.work`) has committed one."""
    from ottla.client.work.state.work_status import decode_status  # imported late to start faster

    found = {tp: decode_status(commit.metadata) for tp, commit in committed.items()}
    return {tp: status for tp, status in found.items() if status is not None}
