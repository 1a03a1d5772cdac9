"""Many records at once: a topic that gets ten thousand partitions is made anew once, and not for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.coordination.cluster.partition_record import state_of
from ottla.coordination.cluster.records import PartitionRecord
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.coordination.cluster.metadata import ClusterMetadata


def replay_all(machine: ClusterMetadata, records: Iterable[Message]) -> None:
    """The same as to replay one after the other."""
    for topic_id, run in groupby(records, key=topic_of):
        if topic_id is None or machine.in_transaction:
            for record in run:
                machine.replay(record)
        else:
            replay_partitions(machine, topic_id, list(run))  # type: ignore[arg-type]  # that is what the key says


def topic_of(record: Message) -> UUID | None:
    """Whose partition a record is about; None for those of other kinds."""
    return record.topic_id if type(record) is PartitionRecord else None


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
