"""Damage inside a log: where it is, which offsets it takes with it, and how to come past it.

    batch │ batch │ ▒▒▒▒▒▒▒ │ batch │ …
                  │         └ next_offset: from here on the log can be read again
                  └ offset: the first that cannot be read

Looks for batches that are whole by their CRC, so it is slow; nobody comes here before something did not fit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import HasFileno
from ottla.storage.log_config import FOREVER
from ottla.storage.sound_walk import Bounds, Found, Unsound, checked_walk

if TYPE_CHECKING:
    from ottla.storage.log import Log
    from ottla.storage.producer_state import AbortedTransaction

SMALL_BYTES = 64 * 1024 * 1024
"""A segment up to this size is looked at from its beginning, a larger one from where its index says."""


@dataclass(frozen=True)
class Damage:
    """Bytes of a segment that are no batches of this log."""

    file: Path
    position: int
    size_bytes: int
    offset: int
    """The first that cannot be read."""
    next_offset: int
    """Where the log goes on; the segment's end where nothing of it does."""
    reason: str

    def __str__(self) -> str:
        if not self.size_bytes:
            return f"{self.file}, position {self.position}: {self.reason}"
        lost = f"offsets {self.offset} to {self.next_offset - 1}" if self.next_offset > self.offset else "no offset"
        return f"{self.file}: {self.size_bytes} bytes at position {self.position} ({lost}) are damaged: {self.reason}"


@dataclass(frozen=True)
class UnsureEnd(Damage):
    """Damage in which a transaction may have ended, so that nobody knows whether its records before it count."""

    producer_id: int

    def __str__(self) -> str:
        last = self.next_offset - 1
        return (
            f"{self.file}: whether the transaction of producer {self.producer_id} from offset {self.offset} on "
            f"was committed is not known, as {self.reason} at offset {last}"
        )


class OutOfServiceError(KafkaError):
    """What is stored cannot be believed, so it is left as it is and nobody may use it before a person has looked at it.

    Of the codes there are, UNKNOWN_SERVER_ERROR is the one that clients do not try again in silence.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)


class DamagedLogError(CorruptRecordError):
    """The record that was asked for cannot be believed; `damage` says where it is, and where records go on."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(
            f"{damage.file.parent.name}, offset {damage.offset}: {damage}; "
            f"seek to offset {damage.next_offset} to go on without it"
        )
        self.damage = damage

    def __reduce__(self) -> tuple[type[DamagedLogError], tuple[Damage]]:
        return DamagedLogError, (self.damage,)


def damage_of(path: Path, found: Unsound) -> Damage:
    """What a walk over a segment's file could not believe."""
    return Damage(path, found.position, found.size_bytes, found.first_offset, found.next_offset, found.reason)


def survey(
    file: HasFileno, path: Path, size: int, offset: int, bounds: Bounds, position: int = 0
) -> Iterator[Found | Damage]:
    """The batches from `position` on, where `offset` is expected or a later one, and the damage between them.

    Every CRC is looked at. Where nothing tells how many offsets damage at the end takes, it takes none.
    """
    for found in checked_walk(file, position, size, offset, bounds):
        if isinstance(found, Found):
            yield found
        elif isinstance(found, Unsound):
            unknown = found.at_end and bounds.end is None and bounds.below == FOREVER
            yield damage_of(path, found._replace(next_offset=found.first_offset) if unknown else found)


def find_damage(log: Log, offset: int) -> Damage | None:
    """The first damage that whoever reads on from `offset` meets; None where all is whole from there on."""
    first = max(bisect_right(log.bases, offset) - 1, 0)
    for number, segment in enumerate(log.segments[first:]):
        bounds = Bounds(min(segment.below, log.end_offset), segment.epochs())
        start = 0 if segment.size <= SMALL_BYTES or number else segment.entry_before(offset)[1]
        for found in survey(segment.file, segment.path, segment.size, segment.base_offset, bounds, start):
            if isinstance(found, Damage) and (found.next_offset > offset or not found.size_bytes):
                return found
    return None


def unsure_end(log: Log, unsure: AbortedTransaction) -> UnsureEnd:
    """What to tell of a transaction that may have ended in damage."""
    segment = log.segments[max(bisect_right(log.bases, unsure.last_offset) - 1, 0)]
    damage = segment.ground.damaged(unsure.last_offset)
    position, size = (damage.position, damage.size_bytes) if damage is not None else (0, 0)
    return UnsureEnd(
        segment.path,
        position,
        size,
        unsure.first_offset,
        unsure.last_offset + 1,
        "the log is damaged",
        unsure.producer_id,
    )


def out_of_service(log: Log, offset: int, error: Exception) -> OutOfServiceError:
    """The sentence about a log that must be read whole, and cannot be from `offset` on."""
    damage = find_damage(log, offset)
    return OutOfServiceError(f"{damage or error}; {remedy(log.directory)}")


def remedy(folder: Path) -> str:
    """How a person sets damage in a partition's folder aside."""
    command = f"ottla log repair {folder.parent} --topic-partition {folder.name}"
    return f"to set the damage aside stop the broker and run: {command} --execute"
