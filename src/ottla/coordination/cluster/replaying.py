"""Replay many records in one step.

A topic is an immutable value, so replaying 10,000 partitions one by one would copy its partitions 10,000 times.
Successive records of the partitions of one topic are therefore applied together. The result is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.coordination.cluster.partition_record import apply_change, read_partition
from ottla.coordination.cluster.records import PartitionChangeRecord, PartitionRecord
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.coordination.cluster.metadata import ClusterMetadata


def replay_all(machine: ClusterMetadata, records: Iterable[Message]) -> None:
    """Replay the records in order."""
    for (kind, topic_id), run in groupby(records, key=find_partition_key):
        if topic_id is None or machine.in_transaction:
            for record in run:
                machine.replay(record)
        elif kind is PartitionRecord:
            replay_partitions(machine, topic_id, list(run))  # type: ignore[arg-type]  # that is what the key says
        else:
            replay_changes(machine, topic_id, run)  # type: ignore[arg-type]


def find_partition_key(record: Message) -> tuple[type[Message] | None, UUID | None]:
    """Return the kind of a partition record and its topic id; None twice for other records."""
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        return type(record), record.topic_id
    return None, None


def replay_changes(machine: ClusterMetadata, topic_id: UUID, records: Iterable[PartitionChangeRecord]) -> None:
    """Apply changes of partitions of one topic."""
    topic = machine.find_topic_by_id(topic_id)
    if topic is None:
        return  # The record of the topic was damaged and skipped.
    partitions = list(topic.partitions)
    for record in records:
        if record.partition_id < len(partitions):
            partitions[record.partition_id] = apply_change(partitions[record.partition_id], record)
    machine.put_partitions(topic, tuple(partitions))


def replay_partitions(machine: ClusterMetadata, topic_id: UUID, records: Sequence[PartitionRecord]) -> None:
    """Apply records of partitions of one topic.

    New partitions in order of their index are added together; the records after the first other one are replayed one by
    one.
    """
    topic = machine.find_topic_by_id(topic_id)
    if topic is None:
        return  # The record of the topic was damaged and skipped.
    first = len(topic.partitions)
    count = next((n for n, each in enumerate(records) if each.partition_id != first + n), len(records))
    if count:
        machine.put_partitions(topic, (*topic.partitions, *map(read_partition, records[:count])))
    for record in records[count:]:
        machine.replay(record)
