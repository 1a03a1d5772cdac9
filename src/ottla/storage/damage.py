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

if TYPE_CHECKING:
    from ottla.storage.log import Log
    from ottla.storage.walk import Batch


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


class Damages:
    """Those of one segment, one by one; afterwards `end_offset` is known."""

    def __init__(self, found: Iterator[Batch | Damage], base_offset: int) -> None:
        self._found = found
        self.end_offset = base_offset

    def __iter__(self) -> Iterator[Damage]:
        for each in self._found:
            if isinstance(each, Damage):
                yield each
            else:
                self.end_offset = each.header.next_offset


def damages_of(
    file: HasFileno, path: Path, base_offset: int, size: int, *, end_offset: int | None = None, gaps: bool = True
) -> Damages:
    """All damage of a segment. `end_offset` is where the next segment begins, or the log ends, if that is known.

    Without `gaps` each batch must begin where the one before it ends.
    """
    return Damages(survey(file, path, 0, size, base_offset, end_offset, gaps=gaps), base_offset)


def survey(
    file: HasFileno,
    path: Path,
    position: int,
    size: int,
    offset: int,
    end_offset: int | None = None,
    *,
    gaps: bool = True,
) -> Iterator[Batch | Damage]:
    """The batches from `position` on, where `offset` is expected or a later one, and the damage between them.

    Base offsets are not in the CRC: a batch whose offsets do not lie between those of its neighbours is damage, too.
    The bytes of a batch that is given here may be gone already.
    """
    from ottla.storage.walk import Gap, walk  # who reads whole logs does without

    began, reason = -1, ""
    held: Batch | None = None
    """The last batch that may stand where it does, if the next one does not contradict it."""

    def taken(batch: Batch) -> Iterator[Batch | Damage]:
        nonlocal offset, began
        if began >= 0:
            yield Damage(path, began, batch.position - began, offset, batch.header.base_offset, reason)
            began = -1
        offset = batch.header.next_offset
        yield batch

    for found in walk(file, position, size):
        if held is not None:
            leapt = not isinstance(found, Gap) and offset <= found.header.base_offset < held.header.next_offset
            if leapt:
                assert not isinstance(found, Gap)
                why = f"a batch has offset {held.header.base_offset}, the one behind it {found.header.base_offset}"
                began, reason = (held.position, why) if began < 0 else (began, reason)
            else:
                yield from taken(held)
            held = None
        fault = found.reason if isinstance(found, Gap) else misplaced(found, offset, end_offset, gaps or began >= 0)
        if fault:
            began, reason = (found.position, fault) if began < 0 else (began, reason)
        elif not isinstance(found, Gap):
            held = found
    if held is not None:
        yield from taken(held)
    if began >= 0:
        yield Damage(path, began, size - began, offset, max(offset, end_offset or 0), reason)


def find_damage(log: Log, offset: int) -> Damage | None:
    """The first damage that whoever reads on from `offset` meets; None where all is whole from there on."""
    first = max(bisect_right(log.bases, offset) - 1, 0)
    for number in range(first, len(log.segments)):
        segment = log.segments[number]
        end_offset = log.bases[number + 1] if number + 1 < len(log.bases) else log.end_offset
        start = 0 if segment.size <= SMALL_BYTES or number > first else segment.entry_before(offset)[1]
        for found in survey(segment.file, segment.path, start, segment.size, segment.base_offset, end_offset):
            if isinstance(found, Damage) and (found.next_offset > offset or not found.size_bytes):
                return found
    return None


def out_of_service(log: Log, offset: int, error: Exception) -> OutOfServiceError:
    """The sentence about a log that must be read whole, and cannot be from `offset` on."""
    damage = find_damage(log, offset)
    return OutOfServiceError(f"{damage or error}; {remedy(log.directory)}")


def remedy(folder: Path) -> str:
    """How a person sets damage in a partition's folder aside."""
    command = f"ottla log repair {folder.parent} --topic-partition {folder.name}"
    return f"to set the damage aside stop the broker and run: {command} --execute"


def misplaced(batch: Batch, offset: int, end_offset: int | None, gaps: bool) -> str:
    """What is wrong with the offsets of a batch that is whole; nothing where it may stand there."""
    header = batch.header
    if header.base_offset < offset or (header.base_offset != offset and not gaps):
        return f"a batch has offset {header.base_offset}, expected {offset}{' or more' if gaps else ''}"
    if end_offset is not None and header.next_offset > end_offset:
        return f"a batch has offset {header.base_offset}, and the next segment begins at {end_offset}"
    return ""
