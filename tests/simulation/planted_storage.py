"""Mistakes between replication and the disk, each to be planted and found by the histories over storage's own log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.storage.log import Log
from ottla.storage.segments.segment import Segment

Plant = Callable[[pytest.MonkeyPatch], None]


def keeps_sequences_of_truncated_batches(patch: pytest.MonkeyPatch) -> None:
    """A producer's batch that was cut off is taken for a repetition when it is sent again, and acknowledged."""

    def believe(self: Log, now_ms: int) -> None:
        self.producers_in_doubt = False

    patch.setattr(Log, "restore_producers", believe)


def keeps_torn_segments(patch: pytest.MonkeyPatch) -> None:
    """A power loss removed the end of one segment and left the next: the missing records are never fetched."""
    patch.setattr(Log, "truncate_torn", lambda self, *, now_ms: self.truncate_to(self.end_offset, now_ms=now_ms))


def counts_written_records_as_flushed(patch: pytest.MonkeyPatch) -> None:
    """The recovery point is ahead of the disk, and so is the file of a clean shutdown."""
    flush = Segment.flush
    patch.setattr(Segment, "flush", lambda self, *, sync=True: flush(self, sync=False))


PLANTED: dict[Plant, int] = {
    keeps_sequences_of_truncated_batches: 26,
    keeps_torn_segments: 1,
    counts_written_records_as_flushed: 0,
}
"""And a seed at which it was found, to be tried first."""
