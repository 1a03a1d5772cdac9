"""The offset of each restored record, and of a group's offset, in the target.

The records of a partition get consecutive offsets from `base` on: record number i of the backup is at `base + i`. So the target's end
offset alone says how many records are restored, an interrupted restore continues without a ledger, and without gaps in the source
every record keeps its offset. A group's offset becomes `base` plus the number of records before it.
"""

from __future__ import annotations

from typing import Literal

from ottla.backup.manifest import BackupError, PartitionBackup

OffsetPolicy = Literal["keep", "require", "renumber"]
MAX_FILLED_OFFSETS = 10_000_000
"""The number of offsets before the first record up to which `keep` fills them."""


class OffsetMap:
    """The offsets of one partition."""

    def __init__(self, base: int, partition: PartitionBackup) -> None:
        self.base = base
        """The offset of the first record in the target."""
        self._partition = partition

    @property
    def end(self) -> int:
        """The target's end offset after a complete restore."""
        return self.base + self._partition.records

    @property
    def has_kept_offsets(self) -> bool:
        """True if every record has the offset that it had in the source."""
        return self.base == first_offset(self._partition) and not count_missing(self._partition)

    def locate(self, offset: int) -> tuple[int, int] | int:
        """Return the place of a group's offset: the target's offset, if the segments' bounds are enough to know it.

        Otherwise return the index of the segment with the offset, and the number of records in the target before it.
        """
        position = self.base
        for index, segment in enumerate(self._partition.segments):
            if offset <= segment.first_offset:
                return position
            if offset < segment.next_offset:
                if segment.next_offset - segment.first_offset == segment.records:
                    return position + offset - segment.first_offset
                return index, position
            position += segment.records
        return position


def first_offset(partition: PartitionBackup) -> int:
    """Return the offset of the first record; that after the last one if there are no records."""
    return partition.segments[0].first_offset if partition.segments else partition.end


def count_missing(partition: PartitionBackup) -> int:
    """Return the number of offsets without a record after the first record."""
    return partition.end - first_offset(partition) - partition.records


def choose_base(partition: PartitionBackup, policy: OffsetPolicy, name: str) -> int:
    """Return the offset of the first record in the target. Raises BackupError if `require` cannot be met."""
    first = first_offset(partition)
    if policy == "renumber":
        return 0
    if policy == "require":
        if missing := count_missing(partition):
            raise BackupError(
                f"the offsets of {name} cannot be kept: {missing} offsets from {first} to {partition.end} have no record, "
                "because of transactions, compaction or deleted records. Restore with --offsets keep: records keep "
                "their offsets up to the first gap, and the offsets of groups are translated"
            )
        return first
    return first if first <= MAX_FILLED_OFFSETS else 0
