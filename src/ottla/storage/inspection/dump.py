"""The content of any file of a log, entry by entry, under the names of Kafka's DumpLogSegments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ottla.errors import ConfigError, CorruptRecordError
from ottla.records.batch import HEADER_BYTES, BatchHeader
from ottla.records.columns import decode
from ottla.records.compression import Codec
from ottla.records.control import control_type
from ottla.storage.batches.walk import Gap, StoredBatch, walk
from ottla.storage.files.open_file import OpenFile
from ottla.storage.files.regular_file import read_whole
from ottla.storage.inspection.index_check import OFFSET_ENTRY, TIME_ENTRY, iter_entries
from ottla.storage.inspection.state_files import find_reader

Entry = dict[str, Any]
Render = Callable[[bytes | None, bytes | None], Entry]
"""Returns the displayed form of a record's key and value."""
LOGS = (".log", ".checkpoint")
"""The second are snapshots of the cluster's metadata, which have the same format."""
ALL = (*LOGS, ".index", ".timeindex")


def dump(path: Path, render: Render | None) -> Iterator[Entry]:
    """Yield the entries of a file; with `render` also the records of its batches.

    ConfigError where the file is of no kind that a log has, or is damaged as a whole.
    """
    reader = find_reader(path)
    if reader is not None:
        try:
            yield from reader(path)
        except (ValueError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is damaged: {error}") from None
    elif path.suffix in LOGS:
        yield from dump_log(path, render)
    elif path.suffix == ".index":
        for relative, position in iter_entries(read_whole(path), OFFSET_ENTRY):
            yield {"offset": base_of(path) + relative, "position": position}
    elif path.suffix == ".timeindex":
        for timestamp, relative in iter_entries(read_whole(path), TIME_ENTRY):
            yield {"timestamp": timestamp, "offset": base_of(path) + relative}
    else:
        raise ConfigError(f"{path} is not a file of a log: those end in {', '.join(ALL)}, .snapshot or -checkpoint")


def base_of(path: Path) -> int:
    """Return the offset in a file's name."""
    digits = path.name[:20]
    if not digits.isdigit():
        raise ConfigError(f"{path} is not named for an offset, so what its entries mean is not known")
    return int(digits)


def dump_log(path: Path, render: Render | None) -> Iterator[Entry]:
    file = OpenFile(path, read=True)
    for found in walk(file, 0, os.fstat(file.fileno()).st_size):
        if isinstance(found, Gap):
            yield {"position": found.position, "size": found.size_bytes, "isvalid": False, "error": found.reason}
            continue
        yield batch_entry(found)
        if render is not None:
            yield from record_entries(found, render)


def batch_entry(batch: StoredBatch) -> Entry:
    header = batch.header
    last_sequence = header.base_sequence + header.last_offset_delta if header.base_sequence >= 0 else -1
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.count,
        "baseSequence": header.base_sequence,
        "lastSequence": last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.base_timestamp if header.has_delete_horizon else None,
        "position": batch.position,
        time_name(header): header.max_timestamp,
        "size": header.size_bytes,
        "magic": header.magic,
        "compresscodec": Codec(header.codec).name.lower(),
        "crc": header.crc,
        "isvalid": True,
    }


def time_name(header: BatchHeader) -> str:
    return "LogAppendTime" if header.timestamp_type else "CreateTime"


def record_entries(batch: StoredBatch, render: Render) -> Iterator[Entry]:
    """Yield the records of a batch, which are marked by a field "record"."""
    header = batch.header
    if header.is_control:
        kind = control_type(batch.data[HEADER_BYTES:])
        yield {"record": True, "offset": header.base_offset, "endTxnMarker": "other" if kind is None else kind.name}
        return
    try:
        columns = decode(bytes(batch.data))
    except CorruptRecordError as error:
        yield {"record": True, "offset": header.base_offset, "error": str(error)}
        return
    for row in range(columns.count):
        key, value = columns.key(row), columns.value(row)
        offset = columns.offsets[row]
        yield {
            "record": True,
            "offset": offset,
            time_name(header): columns.timestamps[row],
            "keySize": -1 if key is None else len(key),
            "valueSize": -1 if value is None else len(value),
            "sequence": header.base_sequence + offset - header.base_offset if header.base_sequence >= 0 else -1,
            "headerKeys": [name for name, _ in columns.headers(row)],
            **render(key, value),
        }
