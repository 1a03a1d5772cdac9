"""Any one flipped bit in any file of a log: readers get what is true, or an error that names the place.

A sample of all bits is flipped; `OTTLA_FLIPS=all` flips each, another number so many.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

from ottla.client.consumer.fetching.completed_fetch import CompletedFetch
from ottla.errors import CorruptRecordError
from ottla.model import TopicPartition
from ottla.records.batch import iter_headers
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import append, open_log
from tests.storage.producing import end, send
from tests.storage.unforced import nothing_is_forced  # noqa: F401 (a fixture that acts by being here)

FLIPS = os.environ.get("OTTLA_FLIPS", "32")
SEED = int(os.environ.get("OTTLA_SEED", "1"))
SMALL = LogConfig(segment_bytes=700, index_interval_bytes=100)
PLACE = re.compile(r"offset (\d+):.*seek to offset (\d+)", re.S)
Rows = dict[int, bytes | None]


class Answer(NamedTuple):
    """The result of one fetch."""

    rows: Rows
    next_offset: int
    """The next offset to read; the requested offset if there is none."""


def written(directory: Path) -> Log:
    """Two producers with overlapping transactions that commit and abort, and records without a producer, in some
    segments.
    """
    log = open_log(directory, SMALL)
    for turn in range(3):
        send(log, 1, 2 * turn, 2, transactional=True)
        append(log, b"p%d" % turn)
        send(log, 2, turn, 1, transactional=True)
        end(log, 1, commit=turn == 1)
        end(log, 2, commit=turn != 1)
        append(log, b"q")
    return log


def fetch(log: Log, offset: int, *, committed: bool) -> Answer:
    """Fetch from the log as a broker does, and decode the response as a client does."""
    piece, aborted = log.read_committed(offset, 1 << 20) if committed else (log.read(offset, 1 << 20), [])
    if piece is None:
        return Answer({}, offset)
    data = memoryview(os.pread(piece.file.fileno(), piece.size, piece.position))
    answer = SimpleNamespace(records=data, high_watermark=log.end_offset, aborted_transactions=aborted)
    fetched = CompletedFetch(TopicPartition("t", 0), offset, answer, -1)
    columns = fetched.decode(offset, None, check_crcs=True, with_headers=True)
    rows = {columns.offsets[row]: columns.value(row) for row in range(columns.count)}
    assert len(rows) == columns.count
    return Answer(rows, columns.next_offset)


def truth(log: Log, *, committed: bool) -> Rows:
    """All that a reader gets."""
    rows: Rows = {}
    offset = log.start_offset
    while (answer := fetch(log, offset, committed=committed)).next_offset > offset:
        rows |= answer.rows
        offset = answer.next_offset
    return rows


def assert_served_or_reported(log: Log, true: Rows, *, committed: bool) -> None:
    """A reader that starts at any offset gets the records that follow, or an error with the damaged range and the next
    offset.
    """
    end_offset = log.recovery.offset if log.recovery is not None else log.end_offset
    for offset in range(log.start_offset, log.end_offset):
        try:
            answer = fetch(log, offset, committed=committed)
        except CorruptRecordError as error:
            assert_names_the_place(str(error), offset)
        else:
            stop = answer.next_offset if answer.next_offset > offset else end_offset
            assert answer.rows == {each: true[each] for each in true if offset <= each < stop}, offset


def assert_names_the_place(sentence: str, offset: int) -> None:
    """The first damaged offset, and the next readable offset, which is after the requested one."""
    place = PLACE.search(sentence)
    assert place is not None, sentence
    assert int(place[1]) < int(place[2]) > offset, sentence


def flips(directory: Path) -> Iterator[tuple[Path, int, int]]:
    """File, position and bit: of each kind of file as many, or all that there are."""
    chance = random.Random(SEED)
    kinds: dict[str, list[tuple[Path, int, int]]] = {}
    for path in sorted(directory.iterdir()):
        every = kinds.setdefault(path.suffix, [])
        every += [(path, position, bit) for position in range(path.stat().st_size) for bit in range(8)]
    for kind, every in kinds.items():
        share = len(every) if FLIPS == "all" else int(FLIPS) if kind == ".log" else int(FLIPS) // 8
        yield from chance.sample(every, min(share, len(every)))


def copied(source: Path, target: Path) -> Path:
    """A copy of a log's folder, in the place of the one before it."""
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(source, target)


def flipped(source: Path, target: Path, path: Path, position: int, bit: int) -> Path:
    """A copy of a log's folder in which one bit is another."""
    copied(source, target)
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    (target / path.name).write_bytes(data)
    return target


@pytest.mark.parametrize("clean", [True, False])
def test_every_flipped_bit_is_repaired_or_reported(tmp_path: Path, clean: bool) -> None:
    log = written(tmp_path / "whole" / "t-0")
    true = {committed: truth(log, committed=committed) for committed in (False, True)}
    assert len(true[True]) == 10
    assert len(true[False]) == 15
    log.close() if clean else log.flush()
    log.release()
    for path, position, bit in flips(log.directory):
        folder = flipped(log.directory, tmp_path / "flipped" / "t-0", path, position, bit)
        for committed in (False, True):
            try:
                again = open_log(folder, SMALL, clean=clean, recovery_point=log.end_offset if clean else 0)
                assert_served_or_reported(again, true[committed], committed=committed)
            except Exception as error:
                raise AssertionError(f"{path.name}, position {position}, bit {bit}, committed {committed}") from error


def test_a_flipped_bit_of_an_index_entry_hides_no_record(tmp_path: Path) -> None:
    log = written(tmp_path / "whole" / "t-0")
    true = truth(log, committed=False)
    log.close()
    indexes = [path for path in sorted(log.directory.glob("*.index")) if path.stat().st_size]
    assert sum(path.stat().st_size for path in indexes) >= 32
    for path in indexes:
        for position in range(path.stat().st_size):
            folder = flipped(log.directory, tmp_path / "flipped" / "t-0", path, position, position % 8)
            again = open_log(folder, SMALL, clean=True, recovery_point=log.end_offset)
            for offset in range(log.end_offset):
                answer = fetch(again, offset, committed=False)
                follows = {each: true[each] for each in true if offset <= each < answer.next_offset}
                assert answer.next_offset > offset
                assert answer.rows == follows, (path.name, position, offset)


def thinned(log: Log) -> None:
    """Compact a closed log: in every segment except the last, keep the batches with an odd offset at their offsets."""
    for segment in log.segments[:-1]:
        data = segment.path.read_bytes()
        kept = [each for each in iter_headers(data) if each[1].base_offset % 2]
        cleaned, before = segment.path.with_suffix(".new"), segment.path.stat()
        cleaned.write_bytes(b"".join(data[at : at + header.size_bytes] for at, header in kept))
        os.utime(cleaned, ns=(before.st_atime_ns, before.st_mtime_ns - 1_000_000_000))
        cleaned.replace(segment.path)
        for kind in (".index", ".timeindex"):
            segment.file_path(kind).unlink()


@pytest.mark.parametrize("clean", [True, False])
def test_a_damaged_batch_next_to_a_compacted_range_does_not_block_readers(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path / "whole" / "t-0", SMALL)
    for number in range(24):
        append(log, b"value %d" % number)
    log.close()
    assert len(log.segments) > 2
    thinned(log)
    options = {"clean": clean, "recovery_point": log.end_offset if clean else 0}
    true = truth(open_log(log.directory, SMALL, **options), committed=False)
    path = log.segments[1].path
    for position, header in iter_headers(path.read_bytes()):
        folder = flipped(log.directory, tmp_path / "flipped" / "t-0", path, position + header.size_bytes - 1, 3)
        assert_served_or_reported(open_log(folder, SMALL, **options), true, committed=False)
