"""Damage inside a log: its position, its offsets, and the offset after it.

    batch │ batch │ ▒▒▒▒▒▒▒ │ batch │ …
                  │         └ next_offset: from here on the log can be read again
                  └ offset: the first that cannot be read

The incomplete end that a crash leaves is not damage: it is at the end of the last segment, above the recovery point, and a start
truncates it. Everything else that cannot be verified is damage: bytes that changed after they were complete, a header that does not match its
neighbours (the CRC covers neither base offset nor leader epoch), a file that ends before what was forced to the disk. It is detected by
a start, which checks every CRC above the recovery point; by the first reader of a range that an earlier process wrote; by an append that
reads the past of its producers; or by `ottla log verify`.

Damage is left as it is. A reader that requests an offset in it gets a `DamagedLogError` with the offset where records continue; the
batches before and after it are served. Nothing is appended to a damaged segment: the next batch starts another one. A transaction that was
open there may have ended in it: that is an `UnsureEnd`, and `read_committed` consumers stop before it. The log of a state must be complete, so
it is out of service as a whole. Only `repair`, which an operator starts, moves the bytes aside.

A survey is slow, because it searches for batches by their CRC. It runs only after something did not match.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import INT64_MAX, HasFileno
from ottla.storage.batches.verified_walk import Bounds, Unsound, VerifiedBatch, walk_by_checksums
from ottla.storage.files.regular_file import kind_of


class Damage(Struct, frozen=True):
    """Bytes of a segment that are no batches of this log."""

    file: Path
    position: int
    size_bytes: int
    offset: int
    """The first that cannot be read."""
    next_offset: int
    """The offset at which the log continues; the segment's end if nothing follows."""
    reason: str

    def __str__(self) -> str:
        if not self.size_bytes:
            return f"{self.file}, position {self.position}: {self.reason}"
        lost = f"offsets {self.offset} to {self.next_offset - 1}" if self.next_offset > self.offset else "no offset"
        return f"{self.file}: {self.size_bytes} bytes at position {self.position} ({lost}) are damaged: {self.reason}"


class UnsureEnd(Damage, frozen=True):
    """Damage in which a transaction may have ended, so that it is unknown if the records before it are committed."""

    producer_id: int

    def __str__(self) -> str:
        last = self.next_offset - 1
        return (
            f"{self.file}: whether the transaction of producer {self.producer_id} from offset {self.offset} on "
            f"was committed is not known, as {self.reason} at offset {last}"
        )


class OutOfServiceError(KafkaError):
    """Stored data cannot be verified, so it is left unchanged and cannot be used until an operator has repaired it.

    UNKNOWN_SERVER_ERROR is the error code that clients do not retry silently.
    """

    def __init__(self, message: str, code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR) -> None:
        super().__init__(code, message)


class OfflineError(OutOfServiceError):
    """The directory that has a partition is not there. In a cluster others lead it soon, so clients try again."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ErrorCode.KAFKA_STORAGE_ERROR)


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


def make_damage(path: Path, found: Unsound) -> Damage:
    """Return the damage for an unverified range of a segment's file."""
    return Damage(path, found.position, found.size_bytes, found.first_offset, found.next_offset, found.reason)


def survey_batches(
    file: HasFileno, path: Path, size: int, offset: int, bounds: Bounds, position: int = 0
) -> Iterator[VerifiedBatch | Damage]:
    """Yield the batches from `position` on, the first at `offset` or later, and the damages between them.

    Every CRC is checked. Damage at the end of which the number of offsets is unknown has none.
    """
    for found in walk_by_checksums(file, position, size, offset, bounds):
        if isinstance(found, VerifiedBatch):
            yield found
        elif isinstance(found, Unsound):
            unknown = found.at_end and bounds.end is None and bounds.below == INT64_MAX
            yield make_damage(path, found._replace(next_offset=found.first_offset) if unknown else found)


def repair_remedy(folder: Path) -> str:
    """Return the command with which an operator sets damage in a partition's folder aside."""
    command = f"ottla log repair {folder.parent} --topic-partition {folder.name}"
    return f"to set the damage aside stop the broker and run: {command} --execute"


def not_a_file_error(of: Path) -> OutOfServiceError:
    """Return the error for a directory, or a broken link, with the name of a partition's file."""
    return OutOfServiceError(f"{of} is {kind_of(of)}, where a file belongs; {repair_remedy(of.parent)}")
