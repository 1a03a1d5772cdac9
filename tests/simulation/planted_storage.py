"""Mistakes between replication and the disk, each to be planted and found by the histories over storage's own log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.storage.log import Log
from ottla.storage.segments.segment import Segment

Plant = Callable[[pytest.MonkeyPatch], None]


def keeps_sequences_of_what_it_cut(patch: pytest.MonkeyPatch) -> None:
    """A producer's batch that was cut off is taken for a repetition when it is sent again, and acknowledged."""

    def believe(self: Log, now_ms: int) -> None:
        self.producers_in_doubt = False

    patch.setattr(Log, "restore_producers", believe)


def keeps_what_a_crash_tore(patch: pytest.MonkeyPatch) -> None:
    """A loss of power took the end of one segment and left the next: what is missing is asked of nobody."""
    patch.setattr(Log, "truncate_torn", lambda self, *, now_ms: self.truncate_to(self.end_offset, now_ms=now_ms))


def believes_to_have_forced_what_it_wrote(patch: pytest.MonkeyPatch) -> None:
    """The recovery point goes ahead of the disk, and so does the file of a clean shutdown."""
    flush = Segment.flush
    patch.setattr(Segment, "flush", lambda self, *, sync=True: flush(self, sync=False))


PLANTED: dict[Plant, int] = {
    keeps_sequences_of_what_it_cut: 26,
    keeps_what_a_crash_tore: 1,
    believes_to_have_forced_what_it_wrote: 0,
}
"""And a seed at which it was found, to be tried first."""
