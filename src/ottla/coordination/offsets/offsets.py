"""Committed offsets of groups.

Decides and replays; never reads a clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.coordination.machine import Decision, Reply
from ottla.coordination.offsets.events import Event, OffsetsCommitted, TopicsDeleted
from ottla.coordination.offsets.records import OffsetRecord
from ottla.model import OffsetAndMetadata, TopicPartition


class Offsets:
    """What each group has committed, by partition."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}

    def decide(self, event: Event, now: float) -> Decision[OffsetRecord]:
        """What is to be written and answered."""
        match event:
            case OffsetsCommitted():
                records = tuple(
                    OffsetRecord.of(event.group, partition, committed, event.wall_ms)
                    for partition, committed in event.offsets.items()
                )
                return Decision(records, (Reply(event.ticket, None),))
            case TopicsDeleted():
                forgotten = tuple(
                    OffsetRecord.tombstone(group, partition)
                    for group, committed in self.groups.items()
                    for partition in committed
                    if partition.topic in event.topics
                )
                return Decision(forgotten, (Reply(event.ticket, len(forgotten)),))

    def replay(self, record: OffsetRecord) -> None:
        """The last record of a group and partition counts; one without value takes it away."""
        if record.value is not None:
            value = record.value
            committed = OffsetAndMetadata(value.offset, value.metadata, value.leader_epoch)
            self.groups.setdefault(record.key.group, {})[record.partition] = committed
            return
        group = self.groups.get(record.key.group, {})
        group.pop(record.partition, None)
        if not group:
            self.groups.pop(record.key.group, None)

    def fetch(
        self, group: str, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What `group` committed for these partitions (None: for all); what it did not is left out."""
        committed = self.groups.get(group, {})
        if partitions is None:
            return dict(committed)
        return {partition: committed[partition] for partition in partitions if partition in committed}

    def check(self) -> None:
        assert all(self.groups.values()), "a group without offsets is no group"
