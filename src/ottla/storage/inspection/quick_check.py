"""Damage that headers and small files show: soon found, and not all of it, as no record is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ottla.errors import CorruptRecordError
from ottla.storage.batches.scan import scan
from ottla.storage.files.open_file import OpenFile
from ottla.storage.inspection.fault import Fault
from ottla.storage.inspection.partition_check import faults_of_kind, hole_faults, segment_names
from ottla.storage.inspection.snapshot_check import snapshot_faults
from ottla.storage.inspection.state_files import reader_of, state_files, with_remedy

HEADER_BLOCK = 4096
"""Bytes that are read for each header: of large batches the records are passed over."""


def quick_faults(folder: Path, *, settled: bool) -> Iterator[Fault]:
    """Of a partition: how each segment begins, every header of the last, whether one is known to be gone or cut, and whether the
    files beside them can be read.

    Unless it is `settled` what ends the last segment may be torn: it is being written, or a start will cut it off.
    """
    yield from faults_of_kind(folder)
    yield from snapshot_faults(folder)
    names = segment_names(folder)
    for name in names[:-1]:
        yield from faults_of(folder / name, first_only=True, settled=True)
    for name in names[-1:]:
        yield from faults_of(folder / name, first_only=False, settled=settled)
    yield from hole_faults(folder)
    for path in state_files(folder):
        reader = reader_of(path)
        assert reader is not None
        try:
            reader(path)
        except (ValueError, UnicodeDecodeError) as error:
            yield Fault(path, with_remedy(path, str(error)))


def faults_of(path: Path, *, first_only: bool, settled: bool) -> Iterator[Fault]:
    """The first fault that headers of a segment show, if there is one."""
    file = OpenFile(path, read=True)
    end_offset, end = int(path.name[:20]), os.fstat(file.fileno()).st_size
    reached = 0
    try:
        for position, header in scan(file, 0, end, block_bytes=HEADER_BLOCK):
            if header.base_offset < end_offset:
                reason = f"the batch begins at offset {header.base_offset}, and {end_offset} was due"
                yield Fault(path, reason, position, header.base_offset)
                return
            end_offset, reached = header.base_offset + header.last_offset_delta + 1, position + header.size_bytes
            if first_only:
                return
    except CorruptRecordError as error:
        if settled:
            yield Fault(path, str(error), reached, end_offset)
