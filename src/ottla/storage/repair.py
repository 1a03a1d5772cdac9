"""Set damage aside so that the rest can be served: plan and execute the repairs of `ottla log repair`.

Damaged bytes are kept in a file next to the log, and so is a small file that is rewritten. Offsets do not change: lost records leave
a gap, or, in the metadata log, which may have no gap, records without content.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from ottla.errors import CorruptRecordError
from ottla.kafka_id import text_of
from ottla.model import INT64_MAX, TopicPartition
from ottla.records.batch import HEADER_BYTES, MAGIC, parse_header, stamp
from ottla.records.builder import BatchBuilder
from ottla.records.end_marker import EndMarker, decode_end_marker
from ottla.storage.batches.damage import Damage, make_damage, survey_batches
from ottla.storage.batches.verified_walk import Bounds, Unsound, VerifiedBatch, walk_by_headers
from ottla.storage.directory.meta_properties import FILE_NAME as META
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.directory.offset_checkpoints import RECOVERY_POINTS, OffsetCheckpoints
from ottla.storage.directory.whole_state import ensure_alone
from ottla.storage.files.checkpoint import read_offsets, write_offsets
from ottla.storage.files.durable import sync_path
from ottla.storage.files.open_file import OpenFile, write_all
from ottla.storage.files.regular_file import kind_of, open_regular
from ottla.storage.producers.producer_snapshot import snapshot_offsets
from ottla.storage.producers.producer_state import AbortedTxn, ProducerStateManager
from ottla.storage.recovery.epoch_check import Led, drop_decreasing, group_by_epoch
from ottla.storage.recovery.lost_offsets import LostOffsets, add_lost
from ottla.storage.segments.gaps import end_offset_of, find_holes
from ottla.storage.segments.log_folder import (
    LOG_NAME,
    METADATA_FILE,
    find_misplaced_files,
    has_segments,
    partition_of,
    read_topic_id,
    write_topic_id,
)
from ottla.storage.segments.log_start import find_lost_start, record_deletion
from ottla.storage.segments.succession import record_unknown

METADATA_TOPIC = "__cluster_metadata"
NOTHING = b"\x01\x14\x00\x00"
"""A record of the metadata that says nothing: frame version 1, kind 20 (NoOpRecord), version 0, no tags."""
COPY_BYTES = 1 << 20
ASIDE = ".damaged"
DRAFT = ".tmp"
"""Suffix of temporary files; a start deletes those that a crash left."""


class Repair(Struct, frozen=True):
    """One thing that is not as it should be, and what puts it right."""

    partition: TopicPartition
    fault: str
    remedy: str
    """The effect of `execute`, to be read after "would"."""
    execute: Callable[[], None]


class PartitionFolder(Struct, frozen=True):
    """A partition of a data directory."""

    directory: Path
    partition: TopicPartition

    @property
    def folder(self) -> Path:
        return self.directory / str(self.partition)

    @property
    def is_metadata(self) -> bool:
        return self.partition.topic == METADATA_TOPIC

    def flushed(self) -> int:
        """Return the end of what was once on the disk."""
        return read_offsets(self.directory / RECOVERY_POINTS).get(self.partition, 0)


def plan(directory: Path, wanted: Sequence[TopicPartition], topic_ids: Mapping[str, uuid.UUID]) -> Iterator[Repair]:
    """Yield the repairs of these partitions of a data directory, or of all."""
    known = read_offsets(directory / RECOVERY_POINTS)
    folders = {found for path in directory.iterdir() if path.is_dir() and (found := partition_of(path.name))}
    for partition in sorted(set(wanted) or folders | known.keys()):
        folder = PartitionFolder(directory, partition)
        if partition in folders:
            topic_id = topic_ids.get(partition.topic)
            yield from plan_folders(folder)
            yield from repair_lost_start(folder)
            yield from repair_missing(folder)
            yield from repair_log(folder)
            yield from repair_identity(folder, topic_id)
            yield from repair_empty_folder(folder, topic_id, known.get(partition, 0))
        elif partition in known and partition.topic in topic_ids:
            fault = f"{folder.folder} is gone, and was there up to offset {known[partition]} at least"
            drop = partial(drop_recovery_point, folder)
            yield Repair(partition, fault, "let the partition start empty, at offset 0", drop)


def plan_folders(folder: PartitionFolder) -> Iterator[Repair]:
    """Folders, and links to no file, that have the name of a file of the log."""
    for path in find_misplaced_files(folder.folder):
        aside = find_unused_path(path)
        yield Repair(
            folder.partition, f"{path} is {kind_of(path)}", f"move it to {aside}", partial(move_aside, path, aside)
        )


def move_aside(path: Path, aside: Path) -> None:
    path.rename(aside)
    sync_path(path.parent)


def repair_lost_start(folder: PartitionFolder) -> Iterator[Repair]:
    """Yield the repair for offsets before the first segment that are lost and were not deleted."""
    bases = [int(path.stem) for path in folder.folder.iterdir() if LOG_NAME.fullmatch(path.name) and path.is_file()]
    noted = OffsetCheckpoints(folder.directory).find_start(folder.partition)
    lost = find_lost_start(folder.folder, noted, min(bases)) if bases else None
    if lost is not None:
        begin = partial(record_deletion, folder.folder, lost.next_offset)
        yield Repair(folder.partition, str(lost), f"let the log start at offset {lost.next_offset}", begin)


def repair_missing(folder: PartitionFolder) -> Iterator[Repair]:
    """Segments that are gone from between others, or were cut."""
    for path, found in [] if folder.is_metadata else find_holes(folder.folder):
        remedy = f"go on without them, at offset {found.next_offset}"
        yield Repair(folder.partition, str(make_damage(path, found)), remedy, partial(accept_gap, path, found))


def accept_gap(path: Path, found: Unsound) -> None:
    """Accept what follows the segment now, and note the lost offsets for the replay of transactions, some of which may have ended there."""
    add_lost(path.parent, [LostOffsets(found.first_offset, found.next_offset)])
    record_unknown(path.parent, int(path.stem))


def repair_log(folder: PartitionFolder) -> Iterator[Repair]:
    """Damage in the segments of a partition."""
    paths = sorted(path for path in folder.folder.iterdir() if LOG_NAME.fullmatch(path.name) and path.is_file())
    bases = [int(path.name[:20]) for path in paths]
    segments = list(zip(paths, [*bases[1:], INT64_MAX], strict=False))
    epochs, state = read_epochs(segments), ProducerStateManager()
    for path, below in segments:
        found = list(found_in(path, Bounds(below, epochs, gaps=not folder.is_metadata), state))
        damages = [damage for damage, _ in found]
        if damages and folder.is_metadata:
            ensure_alone(folder.folder, MetaProperties.parse(folder.directory / META).node_id, damages[0])
        end = find_known_end(folder, damages[-1]) if damages and below == INT64_MAX else 0
        endings = [damage for damage, unsure in found if unsure]
        for damage, unsure in found:
            yield Repair(
                folder.partition,
                f"{damage}{''.join(map(describe_lost_end, unsure))}",
                f"move these bytes to {aside_of(damage)} and go on without them",
                partial(move_damage_aside, folder, path, damages, end, endings)
                if damage is damages[0]
                else describe_first_remedy,
            )
    yield from repair_end(folder, paths)


def repair_end(folder: PartitionFolder, paths: Sequence[Path]) -> Iterator[Repair]:
    """Repair a log that ends after a complete batch, before the known end of its records."""
    flushed = folder.flushed()
    last = (end_of if folder.is_metadata else end_offset_of)(paths[-1]) if paths else None
    if last is None or last >= flushed:
        return
    fault = f"{paths[-1]}: the log ends at offset {last}, and was on the disk up to {flushed}"
    if folder.is_metadata:
        yield Repair(folder.partition, fault, "go on from there", lambda: drop_recovery_point(folder))
    else:
        fault += f" (if {RECOVERY_POINTS} is wrong in that, move it away instead)"
        remedy = f"go on at offset {flushed}, so that none is given twice"
        yield Repair(folder.partition, fault, remedy, partial(continue_after, paths[-1], last, flushed))


def continue_after(path: Path, end: int, flushed: int) -> None:
    """Have a log go on where it was once, behind what is missing at its end."""
    add_lost(path.parent, [LostOffsets(end, flushed)])
    drop_indexes(path)
    path.with_name(f"{flushed:020d}.log").touch()
    sync_path(path.parent)


def drop_indexes(path: Path) -> None:
    """Delete the indexes of a segment, which no longer match it; a start rebuilds them."""
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).unlink(missing_ok=True)


def describe_first_remedy() -> None:
    """All damage of a segment is set aside at once."""


def read_epochs(segments: Sequence[tuple[Path, int]]) -> list[tuple[int, int]]:
    """Return the leader epochs of a log and their start offsets, from the batches that agree with their neighbours."""
    led: list[Led] = []
    for path, below in segments:
        file = OpenFile(path, read=True)
        size = os.fstat(file.fileno()).st_size
        for found in walk_by_headers(file, 0, size, int(path.name[:20]), Bounds(below)):
            if isinstance(found, VerifiedBatch):
                group_by_epoch(led, found.header)
    return [(each.epoch, each.first_offset) for each in drop_decreasing(led)]


def found_in(path: Path, bounds: Bounds, state: ProducerStateManager) -> Iterator[tuple[Damage, list[AbortedTxn]]]:
    """All damage of a segment, each with the transactions that were open there; `state` is that of the batches before."""
    file = OpenFile(path, read=True)
    size = os.fstat(file.fileno()).st_size
    for found in survey_batches(file, path, size, int(path.name[:20]), bounds):
        if isinstance(found, Damage):
            at_end = found.position + found.size_bytes == size  # nothing shows how many offsets it had
            yield found, state.record_lost_range(found.offset, max(found.next_offset, found.offset + at_end), {})
        elif found.header.producer_id >= 0:
            state.add(found.header, marker_in(file, found), 0)


def marker_in(file: OpenFile, found: VerifiedBatch) -> EndMarker | None:
    """Return the end of a transaction, if the batch is one that can be read."""
    try:
        data = os.pread(file.fileno(), found.header.size_bytes, found.position)
        return decode_end_marker(data, 0, found.header) if found.header.is_control else None
    except CorruptRecordError:
        return None


def describe_lost_end(unsure: AbortedTxn) -> str:
    """Describe a transaction that may have ended in damage."""
    return (
        f"; the transaction of producer {unsure.producer_id} from offset {unsure.first_offset} on may have ended there: "
        "its end is unknown, so read_committed consumers get an error there, with the offset at which to continue"
    )


def end_of(path: Path) -> int:
    """Return the offset after the last whole batch of a segment of the metadata."""
    file, end = OpenFile(path, read=True), int(path.name[:20])
    for found in survey_batches(file, path, os.fstat(file.fileno()).st_size, end, Bounds(gaps=False)):
        end = found.next_offset if isinstance(found, Damage) else found.header.next_offset
    return end


def find_known_end(folder: PartitionFolder, damage: Damage) -> int:
    """Return the end offset of a log with damaged last bytes, as far as it is known."""
    ends = [folder.flushed(), *snapshot_offsets(folder.folder), damage.next_offset]
    with open(damage.file, "rb") as file:
        file.seek(damage.position)
        data = file.read(HEADER_BYTES)
    if len(data) == HEADER_BYTES:
        header = parse_header(data)
        if header.magic == MAGIC and header.base_offset == damage.offset and 0 <= header.last_offset_delta < (1 << 20):
            ends.append(header.next_offset)
    return max(ends)


def aside_of(damage: Damage) -> Path:
    """Return the file that keeps the damaged bytes."""
    return damage.file.with_name(f"{damage.file.name}.{damage.position}-{damage.size_bytes}{ASIDE}")


def move_damage_aside(
    folder: PartitionFolder, path: Path, damages: Sequence[Damage], end: int, endings: Sequence[Damage]
) -> None:
    """Move damaged ranges of a segment into files of their own, and have the log end at `end` if it is the last.

    In the `endings` among them transactions may have ended.
    """
    source = OpenFile(path, read=True)
    size = os.fstat(source.fileno()).st_size
    for damage in damages:
        copy(source, damage.position, damage.size_bytes, aside_of(damage))
    draft = path.with_name(path.name + DRAFT)
    fd = open_regular(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        position = begin = 0
        lost = []
        for damage in damages:
            position = append(source, begin, damage.position, fd, position)
            begin = damage.position + damage.size_bytes
            goes_on = max(damage.next_offset, end) if begin == size else damage.next_offset
            lost += [LostOffsets(damage.offset, goes_on)] if damage in endings else []
            if folder.is_metadata and goes_on > damage.offset:
                filler = make_no_op_batch(damage.offset, goes_on)
                write_all(fd, memoryview(filler), position)
                position += len(filler)
        append(source, begin, size, fd, position)
        os.fsync(fd)
    finally:
        os.close(fd)
    if lost:
        add_lost(folder.folder, lost)
    record_unknown(folder.folder, int(path.stem))  # so that no start reports the removed bytes as missing
    drop_indexes(path)
    os.replace(draft, path)
    last = damages[-1]
    if end > last.offset and last.position + last.size_bytes == size and not folder.is_metadata:
        path.with_name(f"{end:020d}.log").touch()  # No offset is given a second time.
    sync_path(folder.folder)


def make_no_op_batch(offset: int, end: int) -> bytes:
    """Return a batch that fills a gap in the log of the metadata."""
    builder = BatchBuilder(max_bytes=1 << 30)
    for _ in range(offset, end):
        builder.append(0, None, NOTHING)
    batch = bytearray(builder.build())
    stamp(batch, 0, offset, 0)
    return bytes(batch)


def copy(source: OpenFile, position: int, size: int, target: Path) -> None:
    """Keep a piece of a file in another."""
    fd = open_regular(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        append(source, position, position + size, fd, 0)
        os.fsync(fd)
    finally:
        os.close(fd)


def append(source: OpenFile, begin: int, end: int, fd: int, position: int) -> int:
    """Copy a piece of a file to a position of another; where it ends there."""
    while begin < end:
        data = os.pread(source.fileno(), min(COPY_BYTES, end - begin), begin)
        if not data:
            raise CorruptRecordError(f"the file has become shorter while it was read: it ends at {begin}, not at {end}")
        write_all(fd, memoryview(data), position)
        begin, position = begin + len(data), position + len(data)
    return position


def repair_identity(folder: PartitionFolder, topic_id: uuid.UUID | None) -> Iterator[Repair]:
    """Repair a `partition.metadata` that differs from the cluster's metadata."""
    path = folder.folder / METADATA_FILE
    try:
        found = read_topic_id(folder.folder)
    except IsADirectoryError:
        fault = f"{path} is a folder"
    except ValueError as error:
        fault = str(error)
    else:
        if found is None or topic_id is None or found == topic_id:
            return
        fault = f"{path} has topic id {text_of(found)}, the metadata {text_of(topic_id)}"
    if topic_id is None:
        return
    remedy = f"move it to {find_unused_path(path)} and write topic id {text_of(topic_id)}"
    yield Repair(folder.partition, fault, remedy, lambda: write_identity(folder, topic_id))


def repair_empty_folder(folder: PartitionFolder, topic_id: uuid.UUID | None, flushed: int) -> Iterator[Repair]:
    """Yield the repair of a partition that has no log file and no known end."""
    path = folder.folder / METADATA_FILE
    if topic_id is not None and not flushed and path.is_file() and not has_segments(folder.folder):
        remedy = f"move {path.name} to {find_unused_path(path)} and let the partition start empty, at offset 0"
        yield Repair(
            folder.partition, f"{folder.folder} has no segment any more", remedy, lambda: remove_topic_id(path)
        )


def remove_topic_id(path: Path) -> None:
    """Remove the topic id from a folder: the next start treats the folder as new."""
    path.rename(find_unused_path(path))
    sync_path(path.parent)


def write_identity(folder: PartitionFolder, topic_id: uuid.UUID) -> None:
    """Write the topic id of a folder."""
    path = folder.folder / METADATA_FILE
    path.rename(find_unused_path(path))
    write_topic_id(folder.folder, topic_id)
    sync_path(folder.folder)


def find_unused_path(path: Path) -> Path:
    """Return an unused name next to a file."""
    names = (path.with_name(f"{path.name}{number or ''}{ASIDE}") for number in range(1000))
    return next(name for name in names if not name.exists())


def drop_recovery_point(folder: PartitionFolder) -> None:
    """Remove the log from the recovery point checkpoint."""
    path = folder.directory / RECOVERY_POINTS
    offsets = read_offsets(path)
    offsets.pop(folder.partition, None)
    write_offsets(path, offsets)
