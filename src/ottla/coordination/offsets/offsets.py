"""Committed offsets of groups: what a log of commits amounts to.

Replays and looks up; who may commit, and when an offset is forgotten, is decided where the groups are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.coordination.offsets.records import OffsetCommitValue, OffsetRecord
from ottla.model import OffsetAndMetadata, TopicPartition

NOTHING: Mapping[TopicPartition, OffsetCommitValue] = {}


class Offsets:
    """What each group has committed, by partition."""

    def __init__(self) -> None:
        self.groups: dict[str, dict[TopicPartition, OffsetCommitValue]] = {}
        """A group whose last offset was taken away is here until it is buried."""

    def replay(self, record: OffsetRecord) -> None:
        """The last record of a group and partition counts; one without value takes it away."""
        if record.value is not None:
            self.groups.setdefault(record.key.group, {})[record.partition] = record.value
            return
        self.groups.get(record.key.group, {}).pop(record.partition, None)

    def bury(self, group: str) -> None:
        """The group itself is no more; what it committed since still counts."""
        if not self.groups.get(group, True):
            del self.groups[group]

    def of(self, group: str) -> Mapping[TopicPartition, OffsetCommitValue]:
        """Everything that `group` committed."""
        return self.groups.get(group, NOTHING)

    def fetch(
        self, group: str, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What `group` committed for these partitions (None: for all); what it did not is left out."""
        committed = self.of(group)
        wanted: Iterable[TopicPartition] = committed if partitions is None else partitions
        return {partition: offset_and_metadata(committed[partition]) for partition in wanted if partition in committed}


def offset_and_metadata(value: OffsetCommitValue) -> OffsetAndMetadata:
    """A commit as its group sees it."""
    return OffsetAndMetadata(value.offset, value.metadata, value.leader_epoch)
