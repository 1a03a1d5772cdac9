"""Events of logs: their segments, and the ISR.

Values only; the text of each is for people.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import TopicPartition


class SegmentRolled(NamedTuple):
    """A log continues in a new segment."""

    partition: TopicPartition
    base_offset: int

    def __str__(self) -> str:
        return f"{self.partition}: a new segment begins at offset {self.base_offset}"


class SegmentsDeleted(NamedTuple):
    """The oldest segments of a log were deleted, by retention or DeleteRecords."""

    partition: TopicPartition
    deleted: int
    begins_at: int
    """The base offset of the oldest that is left."""

    def __str__(self) -> str:
        which = "its oldest segment is" if self.deleted == 1 else f"its {self.deleted} oldest segments are"
        return f"{self.partition}: {which} deleted; what is left begins at offset {self.begins_at}"


class InSyncChanged(NamedTuple):
    """The ISR of a partition that this broker leads has changed."""

    partition: TopicPartition
    before: tuple[int, ...]
    now: tuple[int, ...]

    def __str__(self) -> str:
        gone, come = sorted({*self.before} - {*self.now}), sorted({*self.now} - {*self.before})
        changes = [f"{word} {', '.join(map(str, ids))}" for word, ids in (("without", gone), ("with", come)) if ids]
        return f"{self.partition}: in sync are {', '.join(map(str, self.now))} ({', '.join(changes)})"
