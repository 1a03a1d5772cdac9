"""What the log cleaner tells of its work.

Values only; the text of each is a line for people.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import TopicPartition


class CleaningBegun(NamedTuple):
    """A log is being compacted."""

    partition: TopicPartition
    dirty_ratio: float
    dirty_bytes: int

    def __str__(self) -> str:
        return f"{self.partition}: compaction begins, {self.dirty_bytes} bytes are dirty ({self.dirty_ratio:.0%})"


class Compacted(NamedTuple):
    """One pass over a log is done."""

    partition: TopicPartition
    end_offset: int
    seconds: float
    bytes_left: int
    bytes_before: int

    def __str__(self) -> str:
        return (
            f"{self.partition}: compacted up to offset {self.end_offset} in {self.seconds:.3f} s: "
            f"{self.bytes_left} bytes of {self.bytes_before} are left"
        )
