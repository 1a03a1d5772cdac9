"""Many records at once: a topic of which ten thousand partitions come or change is made anew once, and not for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.coordination.cluster.partition_record import changed, state_of
from ottla.coordination.cluster.records import PartitionChangeRecord, PartitionRecord
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.coordination.cluster.metadata import ClusterMetadata


def replay_all(machine: ClusterMetadata, records: Iterable[Message]) -> None:
    """The same as to replay one after the other."""
    for (kind, topic_id), run in groupby(records, key=what_is_told):
        if topic_id is None or machine.in_transaction:
            for record in run:
                machine.replay(record)
        elif kind is PartitionRecord:
            replay_partitions(machine, topic_id, list(run))  # type: ignore[arg-type]  # that is what the key says
        else:
            replay_changes(machine, topic_id, run)  # type: ignore[arg-type]


def what_is_told(record: Message) -> tuple[type[Message] | None, UUID | None]:
    """That a topic's partitions begin or change, and whose; nothing of records of other kinds."""
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        return type(record), record.topic_id
    return None, None


def replay_changes(machine: ClusterMetadata, topic_id: UUID, records: Iterable[PartitionChangeRecord]) -> None:
    """Changes of partitions of one topic."""
    topic = machine.topic_by_id(topic_id)
    if topic is None:
        return  # The record of the topic was damaged, and set aside.
    partitions = list(topic.partitions)
    for record in records:
        if record.partition_id < len(partitions):
            partitions[record.partition_id] = changed(partitions[record.partition_id], record)
    machine.put_partitions(topic, tuple(partitions))


def replay_partitions(machine: ClusterMetadata, topic_id: UUID, records: Sequence[PartitionRecord]) -> None:
    """Partitions of one topic: those that go on where it ends together, from the first that does not one by one."""
    topic = machine.topic_by_id(topic_id)
    if topic is None:
        return  # The record of the topic was damaged, and set aside.
    first = len(topic.partitions)
    count = next((n for n, each in enumerate(records) if each.partition_id != first + n), len(records))
    if count:
        machine.put_partitions(topic, (*topic.partitions, *map(state_of, records[:count])))
    for record in records[count:]:
        machine.replay(record)
