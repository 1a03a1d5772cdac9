"""Damage inside a log: where it is, which offsets it takes with it, and how to come past it.

    batch │ batch │ ▒▒▒▒▒▒▒ │ batch │ …
                  │         └ next_offset: from here on the log can be read again
                  └ offset: the first that cannot be read

What a crash leaves half written is no damage: it is the end of the last segment, above the recovery point, and a start cuts it
off. All else that cannot be believed is: bytes that changed since they were whole, a header that does not fit to its neighbours (the
CRC covers neither base offset nor leader epoch), a file that ends before what was once forced to the disk. It is found where it is first
met: by a start, which looks at every CRC above the recovery point; by the first reader of a stretch that an earlier run
wrote; by an append that finds the past of its producers, or by a person with `ottla log verify`.

It stays as it is, and out of service. Who asks for an offset in it gets a `DamagedLogError`, which says where records go on; what is
whole before and behind it is served. Nothing is appended to a segment that has any: the next batch begins another. A transaction that was open
there may have ended in it: it is `UnsureEnd`, and readers of committed records stop before it. The log of a state, of which nothing may be
missing, is out of service whole. Only `repair`, which a person starts, moves the bytes aside.

To look here is slow, as batches are looked for by their CRC; nobody does before something did not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import INT64_MAX, HasFileno
from ottla.storage.batches.sound_walk import Bounds, Found, Unsound, checked_walk
from ottla.storage.files.regular_file import kind_of


class Damage(Struct, frozen=True):
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


class UnsureEnd(Damage, frozen=True):
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
            unknown = found.at_end and bounds.end is None and bounds.below == INT64_MAX
            yield damage_of(path, found._replace(next_offset=found.first_offset) if unknown else found)


def remedy(folder: Path) -> str:
    """How a person sets damage in a partition's folder aside."""
    command = f"ottla log repair {folder.parent} --topic-partition {folder.name}"
    return f"to set the damage aside stop the broker and run: {command} --execute"


def folder_in_place(of: Path) -> OutOfServiceError:
    """A folder, or a link to no file, has the name of a partition's file, which is given."""
    return OutOfServiceError(f"{of} is {kind_of(of)}, where a file belongs; {remedy(of.parent)}")
