"""The state of a partition's producers at an offset: Kafka's `.snapshot` file.

    version int16 │ CRC-32C uint32 of what follows │ count int32 │ entries

Kafka writes one entry for each producer, its last batch. Here there is one for each remembered batch, oldest first, so that
repeated batches are still detected after a restart. Kafka, which keeps the last entry of each producer, reads the same file.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct

from ottla.errors import CorruptRecordError
from ottla.records.crc32c import crc32c
from ottla.storage.files.open_file import write_all
from ottla.storage.files.regular_file import open_regular, read_whole
from ottla.storage.producers.producer_entry import NONE, ProducerEntry, RememberedBatch

LOG = logging.getLogger(__name__)
SNAPSHOT_NAME = re.compile(r"\d{20}\.snapshot")
HEAD = Struct(">hIi")
CHECKED_FROM = 6
"""The first byte that the CRC covers: the count."""
ENTRY = Struct(">qhiqiqiq")
"""Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, transaction's start."""
VERSION = 1


def snapshot_path(directory: Path, offset: int) -> Path:
    """Return the file of the state that the batches below `offset` make."""
    return directory / f"{offset:020d}.snapshot"


def snapshot_offsets(directory: Path) -> list[int]:
    """Return the offsets of the snapshots that are there, in order."""
    return sorted(int(entry.name[:20]) for entry in os.scandir(directory) if SNAPSHOT_NAME.fullmatch(entry.name))


def write_snapshot(directory: Path, offset: int, entries: Iterable[ProducerEntry]) -> None:
    """Write a snapshot. Its CRC shows if a crash left it incomplete; after an error of the disk there is no file."""
    path = snapshot_path(directory, offset)
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        write_all(fd, memoryview(encode_snapshot(entries)), 0)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def read_snapshot(directory: Path, offset: int, seen_ms: int) -> list[ProducerEntry] | None:
    """Return the entries; None where the file is damaged, which is then removed: an earlier one and the log say as much."""
    path = snapshot_path(directory, offset)
    try:
        return decode_snapshot(read_whole(path), seen_ms)
    except CorruptRecordError as error:
        LOG.warning("%s is damaged (%s): the producers are found in the log again", path, error)
        path.unlink(missing_ok=True)
        return None


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    """Return the bytes of the file."""
    rows = [row for entry in entries for row in rows_of(entry)]
    body = len(rows).to_bytes(4, "big") + b"".join(rows)
    return HEAD.pack(VERSION, crc32c(body), len(rows)) + body[4:]


def rows_of(entry: ProducerEntry) -> Iterator[bytes]:
    """One for each batch that is remembered, one where none is."""
    last = len(entry.batches) - 1
    for number, batch in enumerate(entry.batches or [RememberedBatch(NONE, NONE, 0, entry.last_timestamp)]):
        yield ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            batch.last_sequence,
            batch.last_offset,
            batch.offset_delta,
            batch.timestamp if number < last else entry.last_timestamp,
            entry.coordinator_epoch,
            entry.transaction_start,
        )


def decode_snapshot(data: bytes, seen_ms: int) -> list[ProducerEntry]:
    """Parse a snapshot. Producers count as seen at `seen_ms`, because the timestamps of their records may be arbitrary."""
    if len(data) < HEAD.size:
        raise CorruptRecordError(f"{len(data)} bytes are too few for a snapshot, which has at least {HEAD.size}")
    version, crc, count = HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptRecordError(f"the snapshot has version {version}, only {VERSION} is read")
    if crc != crc32c(memoryview(data)[CHECKED_FROM:]):
        raise CorruptRecordError("the snapshot's CRC is not that of its bytes")
    if len(data) != HEAD.size + count * ENTRY.size:
        raise CorruptRecordError(f"the snapshot says it has {count} entries, its {len(data)} bytes do not")
    found: dict[int, ProducerEntry] = {}
    for row in ENTRY.iter_unpack(memoryview(data)[HEAD.size :]):
        add_row(found, row, seen_ms)
    return list(found.values())


def add_row(found: dict[int, ProducerEntry], row: tuple[int, ...], seen_ms: int) -> None:
    """Add an entry of the file: the last one of a producer says what is true, those before it add their batches."""
    id_, epoch, sequence, offset, delta, timestamp, coordinator_epoch, transaction_start = row
    entry = ProducerEntry(id_, epoch, coordinator_epoch, timestamp, max(transaction_start, NONE), seen_ms)
    before = found.get(id_)
    if before is not None and before.epoch == epoch:
        entry.batches.extend(before.batches)
    if offset >= 0:
        entry.batches.append(RememberedBatch(sequence, offset, delta, timestamp))
    found[id_] = entry
