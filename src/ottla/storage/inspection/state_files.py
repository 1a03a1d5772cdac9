"""The small files next to a log: producer snapshots, aborted transactions, checkpoints, identities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any

from ottla.kafka_id import id_of
from ottla.records.crc32c import crc32c
from ottla.storage.files.checkpoint import read_numbers, read_rows
from ottla.storage.files.regular_file import read_whole
from ottla.storage.indexes.transaction_index import FILE_NAME as ABORTING
from ottla.storage.producers.producer_snapshot import CHECKED_FROM, ENTRY, HEAD, VERSION

PRODUCER_FIELDS = (
    "producerId",
    "producerEpoch",
    "lastSequence",
    "lastOffset",
    "offsetDelta",
    "lastTimestamp",
    "coordinatorEpoch",
    "currentTxnFirstOffset",
)
ABORTED = Struct(">hqqqq")
ABORTED_FIELDS = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")


def read_snapshot(path: Path) -> list[dict[str, Any]]:
    """Return the producers in a `.snapshot`; ValueError where it is damaged."""
    data = read_whole(path)
    if len(data) < HEAD.size:
        raise ValueError(f"a producer snapshot has at least {HEAD.size} bytes, this one has {len(data)}")
    version, crc, count = HEAD.unpack_from(data)
    if version != VERSION:
        raise ValueError(f"a producer snapshot of version {version} cannot be read, only of version {VERSION}")
    actual = crc32c(data[CHECKED_FROM:])
    if actual != crc:
        raise ValueError(f"the snapshot has CRC {actual:#010x}, its head says {crc:#010x}")
    if len(data) != HEAD.size + count * ENTRY.size:
        raise ValueError(f"the snapshot announces {count} producers in {len(data)} bytes")
    rows = ENTRY.iter_unpack(data[HEAD.size :])
    return [dict(zip(PRODUCER_FIELDS, row, strict=True)) for row in rows]


def read_aborted(path: Path) -> list[dict[str, Any]]:
    """Return the aborted transactions in a `.txnindex`; ValueError where it is damaged."""
    data = read_whole(path)
    if len(data) % ABORTED.size:
        raise ValueError(f"a transaction index has a multiple of {ABORTED.size} bytes, this one has {len(data)}")
    rows = [dict(zip(ABORTED_FIELDS, row, strict=True)) for row in ABORTED.iter_unpack(data)]
    for row in rows:
        if row["version"] != 0:
            raise ValueError(f"a transaction index of version {row['version']} cannot be read, only of version 0")
        if row["firstOffset"] > row["lastOffset"]:
            raise ValueError(f"a transaction begins at offset {row['firstOffset']} and ends at {row['lastOffset']}")
    return rows


def read_checkpoint(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a checkpoint; ValueError where it is damaged."""
    names = {2: ("epoch", "startOffset"), 3: ("topic", "partition", "offset")}
    if path.is_file() and not path.stat().st_size:
        return []  # Kafka makes them so, and fills them later.
    rows = read_rows(path)
    for row in rows:
        if len(row) not in names or not all(word.lstrip("-").isdigit() for word in row[-2:]):
            raise ValueError(f"the checkpoint has a row {' '.join(row)!r}")
    return [
        {name: int(word) if name != "topic" else word for name, word in zip(names[len(row)], row, strict=True)}
        for row in rows
    ]


def read_properties(path: Path) -> list[dict[str, Any]]:
    """Return the pairs of a `meta.properties` or `partition.metadata`; ValueError where there are none."""
    pairs = {}
    for line in read_whole(path).decode().splitlines():
        name, mark, value = line.partition(": " if path.suffix == ".metadata" else "=")
        if mark and not line.startswith("#"):
            pairs[name] = value
    if "version" not in pairs:
        raise ValueError("the file has no version")
    return [pairs]


def read_identity(path: Path) -> list[dict[str, Any]]:
    """Return the pairs of a `partition.metadata`; ValueError where they name no topic."""
    (pairs,) = read_properties(path)
    if "topic_id" not in pairs:
        raise ValueError("the file has no topic_id")
    id_of(pairs["topic_id"])
    return [pairs]


def read_bases(path: Path) -> list[dict[str, Any]]:
    """Return the segments in an `aborting-segments`; ValueError where it is damaged."""
    return [{"baseOffset": base_offset} for (base_offset,) in read_numbers(path, 1)]


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    ".snapshot": read_snapshot,
    ".txnindex": read_aborted,
    ABORTING: read_bases,
    "leader-epoch-checkpoint": read_checkpoint,
    "recovery-point-offset-checkpoint": read_checkpoint,
    "log-start-offset-checkpoint": read_checkpoint,
    "replication-offset-checkpoint": read_checkpoint,
    "cleaner-offset-checkpoint": read_checkpoint,
    "partition.metadata": read_identity,
    "meta.properties": read_properties,
}
"""By name or suffix."""

ABORTED_REMEDY = "a broker rebuilds the file when a read_committed consumer reads there"
EPOCHS_REMEDY = "a broker takes the epochs from the batches at its next start"
REMEDIES = {
    ".snapshot": "a broker finds the producers in the log at its next start",
    ".txnindex": ABORTED_REMEDY,
    ABORTING: "a broker asks every segment for its aborted transactions",
    "leader-epoch-checkpoint": EPOCHS_REMEDY,
    "partition.metadata": "`ottla log repair` on the data directory rewrites it",
}
"""The consequence of a damaged file, by its kind."""


def add_remedy(path: Path, fault: str) -> str:
    """Return the fault of a file, with its consequence."""
    remedy = REMEDIES.get(path.name) or REMEDIES.get(path.suffix)
    return f"{fault}; {remedy}" if remedy else fault


def find_reader(path: Path) -> Callable[[Path], list[dict[str, Any]]] | None:
    """Return the function that reads such a file."""
    return READERS.get(path.name) or READERS.get(path.suffix)


def state_files(folder: Path) -> Iterator[Path]:
    """Return the files in a folder that have a reader, in order."""
    return filter(Path.is_file, find_named_files(folder))


def find_named_files(folder: Path) -> Iterator[Path]:
    """Yield the paths with the name of such a file, in order; reading one reports if it is not a file."""
    yield from sorted(filter(find_reader, folder.iterdir()))
