"""The steps that move a replica from one directory of its broker to another (KIP-113, KIP-858). Pure.

    start ──► copy ──► flush ──► propose the directory ──► … in the metadata … ──► copy, flush ──► switch
                ◄───────┘

While the future replica is filled, all reads and writes use the present one. It is replaced only when the metadata has the new directory (the choice of a leader
depends on it), when both end at the same offset, and when no other work uses its files.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

FORCE_BYTES = 16 * 1024 * 1024
"""So much is copied before it is forced to the disk: what the system takes beyond that it makes others wait for."""
SMALL_BYTES = 1024 * 1024
"""So much is forced in the loop itself, for a switch."""
MOST_ROUNDS = 5
"""The number of flushes of newly appended data before the remainder is accepted."""


class RelocationStep(Enum):
    CUT = "cut"
    BEGIN = "begin"
    COPY = "copy"
    FORCE = "force"
    REPORT = "report"
    WAIT = "wait"
    SWITCH = "switch"


class RelocationProgress(Struct, frozen=True):
    """How far a copy is on its way."""

    start: int
    """The log start offset of the present replica."""
    end: int
    """And where it ends."""
    copied: int
    """The end offset of the future replica."""
    cut_at: int | None = None
    """The offset to which the present one was truncated since the last step; later records may differ."""
    unforced_bytes: int = 0
    """The bytes of the future one that are not flushed."""
    rounds: int = 0
    """The number of flushes since it first reached the end of the present one."""
    is_reported: bool = False
    """True if the new directory was sent to the controllers."""
    assigned: bool = False
    """True if the metadata has the new directory."""
    at_rest: bool = True
    """True if the present one's files are not being flushed, compacted or read as a whole."""


def next_step(progress: RelocationProgress) -> RelocationStep:
    if progress.cut_at is not None and progress.cut_at < progress.copied:
        return RelocationStep.CUT
    if progress.copied < progress.start:
        return RelocationStep.BEGIN
    if progress.unforced_bytes >= FORCE_BYTES:
        return RelocationStep.FORCE
    if progress.copied < progress.end:
        return RelocationStep.COPY
    if not progress.assigned and progress.is_reported:
        return RelocationStep.WAIT
    if progress.unforced_bytes > SMALL_BYTES and progress.rounds < MOST_ROUNDS:
        return RelocationStep.FORCE
    if not progress.is_reported:
        return RelocationStep.REPORT
    return RelocationStep.SWITCH if progress.at_rest else RelocationStep.WAIT
