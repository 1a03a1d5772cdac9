"""Committed offsets of groups, built from the records of commits.

Replays and looks up; the rules for commits and expiry are in `groups`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.coordination.offsets.records import OffsetCommitValue, OffsetRecord
from ottla.model import OffsetAndMetadata, TopicPartition

NOTHING: Mapping[TopicPartition, OffsetCommitValue] = {}


class Offsets:
    """The committed offsets of each group, by partition."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[TopicPartition, OffsetCommitValue]] = {}
        """A group without offsets stays here until it is deleted."""

    def replay(self, record: OffsetRecord) -> None:
        """Apply a record. The last one of a group and partition counts; a record without a value deletes the offset."""
        if record.value is not None:
            self.groups.setdefault(record.key.group, {})[record.partition] = record.value
            return
        self.groups.get(record.key.group, {}).pop(record.partition, None)

    def remove_group(self, group: str) -> None:
        """Handle the deletion of a group; offsets that were committed after it stay."""
        if not self.groups.get(group, True):
            del self.groups[group]

    def of(self, group: str) -> Mapping[TopicPartition, OffsetCommitValue]:
        """Everything that `group` committed."""
        return self.groups.get(group, NOTHING)

    def fetch(
        self, group: str, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of these partitions, or of all if None; partitions without one are left out."""
        committed = self.of(group)
        wanted: Iterable[TopicPartition] = committed if partitions is None else partitions
        return {partition: offset_and_metadata(committed[partition]) for partition in wanted if partition in committed}


def offset_and_metadata(value: OffsetCommitValue) -> OffsetAndMetadata:
    """Return a commit as its group sees it."""
    return OffsetAndMetadata(value.offset, value.metadata, value.leader_epoch)
