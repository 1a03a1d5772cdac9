from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from struct import iter_unpack

import pytest

from ottla.records.batch import iter_headers
from ottla.storage.indexes.offset_index import OffsetIndex
from ottla.storage.indexes.time_index import TimeIndex
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, append, everything, open_log


def filled(directory: Path, base: int = 0) -> tuple[list[tuple[int, int]], list[tuple[int, int]], bytes]:
    """Return the entries of both index files and the log, for a segment with increasing and decreasing timestamps."""
    log = open_log(directory, LogConfig(index_interval_bytes=400))
    for number in range(100):
        append(log, b"x" * (number % 50), b"y", timestamps=[NOW + number * 37 % 101, NOW + number])
    log.close()
    offsets = list(iter_unpack(">ii", (directory / f"{base:020d}.index").read_bytes()))
    times = list(iter_unpack(">qi", (directory / f"{base:020d}.timeindex").read_bytes()))
    return offsets, times, everything(log)


def test_the_offset_index_names_batches_by_their_last_offset_once_every_interval(tmp_path: Path) -> None:
    offsets, _, data = filled(tmp_path / "t-0")
    batches = {position: header.last_offset for position, header in iter_headers(data)}
    assert offsets
    assert all(batches[position] == offset for offset, position in offsets)
    positions = [0, *(position for _, position in offsets)]
    assert all(400 < after - before < 700 for before, after in pairwise(positions))


def test_the_time_index_names_the_first_batch_that_reached_each_timestamp(tmp_path: Path) -> None:
    _, times, data = filled(tmp_path / "t-0")
    headers = [header for _, header in iter_headers(data)]
    assert times == sorted(times)
    assert len({timestamp for timestamp, _ in times}) == len(times)
    for timestamp, offset in times:
        reached = next(header for header in headers if header.max_timestamp >= timestamp)
        assert (reached.max_timestamp, reached.last_offset) == (timestamp, offset)
    assert times[-1][0] == max(header.max_timestamp for header in headers)


def test_entries_are_relative_to_the_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(index_interval_bytes=1), start_offset=5_000_000_000)
    for _ in range(3):
        append(log, b"a")
    log.close()
    size = log.size_bytes // 3
    index = (tmp_path / "t-0" / "00000000005000000000.index").read_bytes()
    assert list(iter_unpack(">ii", index)) == [(1, size), (2, 2 * size)]


def offset_index(path: Path, data: bytes | None, log_bytes: int = 1000) -> bool:
    if data is not None:
        path.write_bytes(data)
    return OffsetIndex(path, 10).load(log_bytes)


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "big", signed=True) for number in numbers)


@pytest.mark.parametrize(
    ("data", "good"),
    [
        (b"", True),
        (words(1, 100, 2, 200), True),
        (None, False),
        (b"\0\0\0", False),
        (words(1, 100, 2), False),
        (words(1, 100, 0, 0), False),
        (words(0, 0, 0, 0), False),
        (words(2, 100, 1, 200), False),
        (words(1, 200, 2, 100), False),
        (words(1, 100, 2, 1000), False),
        (words(-1, 100, 2, 200), False),
        (words(1, -100, 2, 200), False),
    ],
)
def test_a_damaged_offset_index_is_detected(tmp_path: Path, data: bytes | None, good: bool) -> None:
    assert offset_index(tmp_path / "0.index", data) is good


@pytest.mark.parametrize(
    ("data", "good"),
    [
        (b"", True),
        (words(0, 5, 1, 0, 6, 1, 7, 0, 9), True),
        (words(0, -1, 1, 1, 0, 2), True),
        (None, False),
        (words(0, 5), False),
        (words(0, 5, 1, 0, 5, 2), False),
        (words(0, 5, 2, 0, 6, 1), False),
        (words(0, 5, 1, 0, 0, 0), False),
        (words(0, 5, -1), False),
    ],
)
def test_a_damaged_time_index_is_detected(tmp_path: Path, data: bytes | None, good: bool) -> None:
    path = tmp_path / "0.timeindex"
    if data is not None:
        path.write_bytes(data)
    assert TimeIndex(path, 10).load() is good


def test_timestamps_beyond_32_bits_survive_the_file(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "0.timeindex", 0)
    stamps = [0, 2**31 - 1, 2**31, 2**32 - 1, 2**32, NOW, 2**63 - 1]
    for offset, timestamp in enumerate(stamps):
        assert index.maybe_append(timestamp, offset)
    index.save()
    again = TimeIndex(tmp_path / "0.timeindex", 0)
    assert again.load()
    assert [again.entry(again.before(timestamp)) for timestamp in stamps] == list(
        zip(stamps, range(len(stamps)), strict=True)
    )
    assert again.last() == (2**63 - 1, len(stamps) - 1)


def test_saving_again_writes_only_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    index = OffsetIndex(path, 0)
    index.append(1, 100)
    index.save()
    path.write_bytes(b"\xff" * 8)
    index.append(2, 200)
    index.save()
    assert path.read_bytes() == b"\xff" * 8 + words(2, 200)
