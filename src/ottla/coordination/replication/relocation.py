"""How a copy gets from one directory of its broker to another (KIP-113, KIP-858): what is to be done next. Pure.

    begin ──► copy ──► force ──► tell ──► … the metadata say so … ──► copy, force ──► switch
                 ◄──────┘

While it is filled everybody reads and writes the present copy. It takes the other's place only when the metadata say that
it is there, as who leads is chosen by that, when both end at the same offset, and when nobody works on the files.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

FORCE_BYTES = 16 * 1024 * 1024
"""So much is copied before it is forced to the disk: what the system takes beyond that it makes others wait for."""
SMALL_BYTES = 1024 * 1024
"""So much is forced in the loop itself, for a switch."""
MOST_ROUNDS = 5
"""How often to force what came meanwhile before the rest is taken as it is."""


class Step(Enum):
    """What is to be done."""

    CUT = "cut"
    BEGIN = "begin"
    COPY = "copy"
    FORCE = "force"
    TELL = "tell"
    WAIT = "wait"
    SWITCH = "switch"


class Progress(Struct, frozen=True):
    """How far a copy is on its way."""

    start: int
    """Where the present copy begins."""
    end: int
    """And where it ends."""
    copied: int
    """Where the future one ends."""
    cut_at: int | None = None
    """Where the present one was cut since the last step; all behind that may be other records by now."""
    unforced_bytes: int = 0
    """What of the future one is not known to be on the disk."""
    rounds: int = 0
    """How often it was forced since it came to the end of the present one for the first time."""
    told: bool = False
    """Whether the metadata were asked to say that it is there."""
    assigned: bool = False
    """Whether they say so."""
    at_rest: bool = True
    """Whether nobody forces, compacts or reads the present one's files as a whole."""


def next_step(progress: Progress) -> Step:
    if progress.cut_at is not None and progress.cut_at < progress.copied:
        return Step.CUT
    if progress.copied < progress.start:
        return Step.BEGIN
    if progress.unforced_bytes >= FORCE_BYTES:
        return Step.FORCE
    if progress.copied < progress.end:
        return Step.COPY
    if not progress.assigned and progress.told:
        return Step.WAIT
    if progress.unforced_bytes > SMALL_BYTES and progress.rounds < MOST_ROUNDS:
        return Step.FORCE
    if not progress.told:
        return Step.TELL
    return Step.SWITCH if progress.at_rest else Step.WAIT
