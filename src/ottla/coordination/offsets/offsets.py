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

    def replay(self, record: OffsetRecord) -> None:
        """The last record of a group and partition counts; one without value takes it away."""
        if record.value is not None:
            self.groups.setdefault(record.key.group, {})[record.partition] = record.value
            return
        group = self.groups.get(record.key.group, {})
        group.pop(record.partition, None)
        if not group:
            self.groups.pop(record.key.group, None)

    def of(self, group: str) -> Mapping[TopicPartition, OffsetCommitValue]:
        """Everything that `group` committed."""
        return self.groups.get(group, NOTHING)

    def fetch(
        self, group: str, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What `group` committed for these partitions (None: for all); what it did not is left out."""
        committed = self.of(group)
        wanted: Iterable[TopicPartition] = committed if partitions is None else partitions
        return {partition: told(committed[partition]) for partition in wanted if partition in committed}

    def check(self) -> None:
        assert all(self.groups.values()), "a group without offsets is no group"


def told(value: OffsetCommitValue) -> OffsetAndMetadata:
    """A commit as its group sees it."""
    return OffsetAndMetadata(value.offset, value.metadata, value.leader_epoch)
