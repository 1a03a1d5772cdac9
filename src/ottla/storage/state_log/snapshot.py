"""Snapshots of a state that is kept by a log: Kafka's `<offset>-<epoch>.checkpoint` files (KIP-630).

    header, voters │ batches of records that make the state at `offset` │ footer

A file is whole or not there: it is written under another name first, and its footer says that nothing is missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from ottla.errors import CorruptRecordError
from ottla.records.batch import CONTROL, HEADER_BYTES, BatchHeader, iter_headers, parse_header, seal, stamp, verify
from ottla.records.builder import BatchBuilder
from ottla.records.columns import decode
from ottla.records.control import control_pairs
from ottla.storage.files.durable import sync_path
from ottla.storage.files.regular_file import open_regular, read_whole
from ottla.storage.state_log.voter import Quorum, SoleVoter

NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
DRAFT = ".part"
KEY = Struct(">hh")
"""Version, kind."""
HEADER = Struct(">hqB")
"""Version, time of the last record in it in ms, no tags."""
FOOTER = bytes(3)
"""Version, no tags."""
BATCH_BYTES = 1 << 20
FIRST_BYTES = 1 << 16
"""Enough bytes for the first batch, which has a header and the voters."""


class Kind(IntEnum):
    """Control records of a snapshot."""

    HEADER = 3
    FOOTER = 4
    KRAFT_VERSION = 5
    VOTERS = 6


class SnapshotId(NamedTuple):
    """The content of a snapshot: everything below `offset`. The leader epoch is that of the last record."""

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.offset:020d}-{self.epoch:010d}.checkpoint"


EMPTY = SnapshotId(0, 0)
"""The snapshot at the start of a log that has all its records. It names the voters.

`kafka-storage format` of Kafka 4.4 also writes the records into it with which a new log starts (KIP-1170). They are no state: the first
active controller appends them to the log.
"""


class SnapshotState(NamedTuple):
    """The parsed bytes of a snapshot."""

    values: list[bytes]
    """Its records' values."""
    time_ms: int
    """When the last record in it was written."""
    quorum: Quorum = Quorum()
    """The voters; empty in snapshots of Ottla 0.1, and of a Kafka with voters in its settings."""

    @property
    def has_voters(self) -> bool:
        return self.quorum.voters is not None


def find_snapshots(directory: Path) -> list[SnapshotId]:
    """Return the snapshots in a log's folder, newest first; drafts that a crash left are removed."""
    found = []
    for entry in os.scandir(directory):
        match = NAME.fullmatch(entry.name)
        if match and entry.is_file():
            found.append(SnapshotId(int(match[1]), int(match[2])))
        elif entry.name.endswith(f".checkpoint{DRAFT}"):
            with suppress(FileNotFoundError):  # its writer may complete it at the same time
                os.unlink(entry.path)
    return sorted(found, reverse=True)


def write_state(
    directory: Path,
    snapshot: SnapshotId,
    values: Iterable[bytes],
    now_ms: int,
    voter: SoleVoter | Quorum,
    *,
    sync: bool,
) -> int:
    """Write a snapshot of records without keys, at once, and return its size in bytes. OSError if the disk fails or is full."""
    return write_snapshot(directory / snapshot.file_name, snapshot.epoch, values, now_ms, voter, sync=sync)


def write_snapshot(
    path: Path, epoch: int, values: Iterable[bytes], now_ms: int, voter: SoleVoter | Quorum, *, sync: bool
) -> int:
    """Return the same under any name."""
    draft = path.with_name(path.name + DRAFT)
    try:
        size = write_draft(draft, epoch, encode_batches(values, now_ms, voter), sync=sync)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)  # It may be what fills the disk.
        raise
    if sync:
        sync_path(path.parent)
    return size


def write_draft(path: Path, epoch: int, found: Iterable[bytes], *, sync: bool) -> int:
    """Write batches one after the other; how many bytes they are."""
    size = offset = 0
    with open(path, "wb", opener=open_regular) as file:
        for batch in found:
            stamped = bytearray(batch)
            stamp(stamped, 0, offset, epoch)
            offset += parse_header(batch).count
            size += file.write(stamped)
        file.flush()
        if sync:
            os.fsync(file.fileno())
    return size


def encode_batches(values: Iterable[bytes], now_ms: int, voter: SoleVoter | Quorum) -> Iterator[bytes]:
    """All of a snapshot, each batch from offset 0."""
    first = [
        (Kind.HEADER, HEADER.pack(0, now_ms, 0)),
        (Kind.KRAFT_VERSION, voter.version_record()),
        (Kind.VOTERS, voter.voters_record()),
    ]
    yield control_batch([(kind, value) for kind, value in first if value is not None], now_ms)
    builder = BatchBuilder(max_bytes=BATCH_BYTES)
    for value in values:
        if not builder.append(now_ms, None, value):
            yield builder.build()
            builder = BatchBuilder(max_bytes=BATCH_BYTES)
            builder.append(now_ms, None, value)
    if builder.count:
        yield builder.build()
    yield control_batch([(Kind.FOOTER, FOOTER)], now_ms)


def control_batch(records: Sequence[tuple[Kind, bytes]], now_ms: int) -> bytes:
    """Return a batch of control records."""
    builder = BatchBuilder()
    for kind, value in records:
        builder.append(now_ms, KEY.pack(0, kind), value)
    batch = builder.build()
    return seal(parse_header(batch)._replace(attributes=CONTROL), memoryview(batch)[HEADER_BYTES:])


def read_state(directory: Path, snapshot: SnapshotId) -> SnapshotState:
    """Read a snapshot; without records if it is `EMPTY`. CorruptRecordError if it is not whole, OSError if it does not exist."""
    state = parse_state(read_whole(directory / snapshot.file_name), str(directory / snapshot.file_name))
    return state._replace(values=[]) if snapshot == EMPTY else state


def parse_state(data: bytes, name: str) -> SnapshotState:
    """Parse the bytes of a snapshot; CorruptRecordError, with the file's name, if they are not whole."""
    try:
        return parse_batches(data)
    except CorruptRecordError as error:
        raise CorruptRecordError(f"{name} is not whole: {error}") from error


def parse_batches(data: bytes) -> SnapshotState:
    """CorruptRecordError, which does not know the file's name, where the batches have no header, no footer or wrong CRCs."""
    control: list[tuple[int, bytes | None] | None] = []
    quorum = Quorum()
    end = 0
    for position, header in iter_headers(data):
        end = position + header.size_bytes
        verify(data, position, header)
        pairs = control_of(data, position, header)
        quorum = merge_quorum(quorum, pairs)
        control.append(pairs[0] if pairs else None)
    first, last = (control[0], control[-1]) if control else (None, None)
    if end != len(data) or first is None or first[0] != Kind.HEADER or last is None or last[0] != Kind.FOOTER:
        raise CorruptRecordError(f"{end} of {len(data)} bytes are batches")
    columns = decode(data)
    values = [columns.value(row) or b"" for row in range(columns.count)]
    return SnapshotState(values, time_of(first[1] or b""), quorum)


def merge_quorum(known: Quorum, pairs: Sequence[tuple[int, bytes | None]]) -> Quorum:
    """Return the voters after some control records."""
    for kind, value in pairs:
        if kind == Kind.KRAFT_VERSION:
            known = known._replace(version=value)
        elif kind == Kind.VOTERS:
            known = known._replace(voters=value)
    return known


def read_time(directory: Path, snapshot: SnapshotId) -> int:
    """When the last record in it was written, by its first batch alone; CorruptRecordError, OSError as above."""
    with open(directory / snapshot.file_name, "rb", opener=open_regular) as file:
        data = file.read(FIRST_BYTES)
    for position, header in iter_headers(data):
        verify(data, position, header)
        return time_of(next((value or b"" for _, value in control_of(data, position, header)), b""))
    raise CorruptRecordError(f"{snapshot.file_name} has no header")


def read_quorum(directory: Path, snapshot: SnapshotId) -> Quorum:
    """Return the voters of a snapshot, by its first batch alone; CorruptRecordError, OSError as above."""
    with open(directory / snapshot.file_name, "rb", opener=open_regular) as file:
        data = file.read(FIRST_BYTES)
    for position, header in iter_headers(data):
        verify(data, position, header)
        return merge_quorum(Quorum(), control_of(data, position, header))
    raise CorruptRecordError(f"{snapshot.file_name} has no header")


def control_of(data: bytes, position: int, header: BatchHeader) -> list[tuple[int, bytes | None]]:
    """Kinds and values of the records of a control batch; nothing for other batches."""
    if not header.is_control:
        return []
    return control_pairs(memoryview(data)[position + HEADER_BYTES : position + header.size_bytes], header.count)


def time_of(header: bytes) -> int:
    """Return the time in a snapshot's header."""
    if len(header) < HEADER.size:
        raise CorruptRecordError(f"the header of a snapshot has {len(header)} bytes, not {HEADER.size}")
    return int(HEADER.unpack_from(header)[1])
