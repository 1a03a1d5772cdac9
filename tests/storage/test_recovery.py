from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ottla.errors import CorruptRecordError
from ottla.records.batch import iter_headers
from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.batches.verified_walk import walk_by_checksums
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.files.open_file import OpenFile
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, append, batch, bytes_of, everything, open_log

SMALL = LogConfig(segment_bytes=3000, index_interval_bytes=300)


def written(directory: Path, batches: int = 20, config: LogConfig = SMALL) -> tuple[Log, bytes]:
    """A log that was not closed, and its bytes."""
    log = open_log(directory, config)
    for number in range(batches):
        append(log, b"x" * (number % 50), b"y", timestamps=[NOW + number * 7 % 50] * 2)
    return log, everything(log)


def index_bytes(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*index"))}


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_was_closed_opens_as_it_was(tmp_path: Path, clean: bool) -> None:
    log, data = written(tmp_path / "t-0")
    log.close()
    before = index_bytes(tmp_path / "t-0")
    again = open_log(tmp_path / "t-0", SMALL, clean=clean)
    assert (again.end_offset, everything(again), again.recovery) == (40, data, None)
    assert again.size_bytes == log.size_bytes
    again.close()
    assert index_bytes(tmp_path / "t-0") == before


def test_a_log_that_was_not_closed_opens_with_everything_that_was_written(tmp_path: Path) -> None:
    _, data = written(tmp_path / "t-0")
    again = open_log(tmp_path / "t-0", SMALL)
    assert (again.end_offset, everything(again), again.recovery) == (40, data, None)


def test_a_recovered_log_has_the_indexes_that_it_would_have_had(tmp_path: Path) -> None:
    log, _ = written(tmp_path / "t-0")
    log.close()
    written(tmp_path / "u-0")
    open_log(tmp_path / "u-0", SMALL).close()
    assert index_bytes(tmp_path / "u-0") == index_bytes(tmp_path / "t-0")


def test_appends_continue_at_the_log_end(tmp_path: Path) -> None:
    written(tmp_path / "t-0")
    for clean in (False, True, True, False):
        log = open_log(tmp_path / "t-0", SMALL, clean=clean)
        end = log.end_offset
        assert append(log, b"a") == end
        log.close()
    assert end == 43


def test_a_tail_torn_at_any_byte_is_truncated_and_reported(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a", b"b")
    append(log, b"c", b"d")
    log.close()
    file = tmp_path / "t-0" / "00000000000000000000.log"
    whole = file.read_bytes()
    first = len(batch(b"a", b"b"))
    for length in range(first + 1, len(whole)):
        file.write_bytes(whole[:length])
        again = open_log(tmp_path / "t-0")
        assert again.recovery is not None
        assert (again.recovery.file, again.recovery.offset) == (file, 2)
        assert again.recovery.bytes_cut == length - first
        assert (again.end_offset, file.stat().st_size, everything(again)) == (2, first, whole[:first])


def test_a_tail_with_any_flipped_byte_is_truncated(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a", b"b")
    append(log, b"c", b"d")
    file = tmp_path / "t-0" / "00000000000000000000.log"
    whole = file.read_bytes()
    first = len(batch(b"a", b"b"))
    for position in range(first + 16, len(whole)):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        again = open_log(tmp_path / "t-0")
        assert again.recovery is not None
        assert (again.end_offset, again.recovery.bytes_cut) == (2, len(whole) - first)


def test_zeros_after_the_last_batch_are_truncated(tmp_path: Path) -> None:
    written(tmp_path / "t-0", 3)
    file = tmp_path / "t-0" / "00000000000000000000.log"
    with file.open("ab") as end:
        end.write(bytes(5000))
    again = open_log(tmp_path / "t-0", SMALL)
    assert again.recovery is not None
    assert (again.recovery.bytes_cut, again.end_offset) == (5000, 6)
    assert "cut 5000 bytes at position" in str(again.recovery)


def test_a_batch_with_a_decreasing_offset_ends_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a", b"b")
    with (tmp_path / "t-0" / "00000000000000000000.log").open("ab") as end:
        end.write(batch(b"old"))
    again = open_log(tmp_path / "t-0")
    assert again.recovery is not None
    assert again.end_offset == 2


@pytest.mark.parametrize(("clean", "point"), [(True, 0), (True, 4), (False, 4)])
def test_torn_flushed_bytes_are_kept_and_their_offsets_are_not_reused(tmp_path: Path, clean: bool, point: int) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a", b"b")
    append(log, b"c", b"d")
    log.close()
    file = tmp_path / "t-0" / "00000000000000000000.log"
    whole = file.read_bytes()
    first = len(batch(b"a", b"b"))
    for length in range(first + 61, len(whole)):
        file.write_bytes(whole[:length])
        again = open_log(tmp_path / "t-0", clean=clean, recovery_point=point)
        assert (again.recovery, file.read_bytes()) == (None, whole[:length])
        assert bytes_of(again, 0) == whole[:first]
        with pytest.raises(DamagedLogError) as caught:
            again.read(3, 1)
        damage = caught.value.damage
        assert (damage.file, damage.position, damage.size_bytes) == (file, first, length - first)
        assert damage.offset == 2
        assert damage.next_offset == again.end_offset >= max(point, 3)
        end = append(again, b"e")
        assert (end, [h.base_offset for _, h in iter_headers(bytes_of(again, end))]) == (again.end_offset - 1, [end])
        again.segments[-1].delete()


def test_a_log_damaged_in_an_earlier_segment_keeps_the_later_ones(tmp_path: Path) -> None:
    log, data = written(tmp_path / "t-0", 100)
    second = log.segments[1]
    path = second.path
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    again = open_log(tmp_path / "t-0", SMALL)
    assert (again.recovery, again.end_offset, path.read_bytes()) == (None, 200, bytes(content))
    third = again.bases[2]
    with pytest.raises(DamagedLogError, match=rf"t-0, offset {third - 2}: .*; seek to offset {third} to go on"):
        again.read(third - 1, 1)
    assert data.startswith(bytes_of(again, 0))
    assert data.endswith(bytes_of(again, 199))
    assert append(again, b"a") == 200


def test_a_batch_with_a_wrong_crc_at_start_is_not_served_with_its_predecessors(tmp_path: Path) -> None:
    log, data = written(tmp_path / "t-0", 100)
    path = log.segments[1].path
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # a value: the header fits as before
    path.write_bytes(content)
    again = open_log(tmp_path / "t-0", SMALL)
    last = [position for position, _ in iter_headers(bytes(content))][-1]
    for _ in range(2):
        assert bytes_of(again, again.bases[1]) == content[:last]
        assert bytes_of(again, again.bases[2]) in data


def test_records_below_the_recovery_point_are_not_read_again(tmp_path: Path) -> None:
    log, _ = written(tmp_path / "t-0", 100)
    log.flush()
    assert log.recovery_point == 200
    first = log.segments[0].path
    first.write_bytes(bytes(len(first.read_bytes())))
    again = open_log(tmp_path / "t-0", SMALL, recovery_point=200)
    assert (again.end_offset, again.recovery) == (200, None)


def test_a_torn_tail_after_the_recovery_point_is_truncated(tmp_path: Path) -> None:
    log, data = written(tmp_path / "t-0", 20)
    log.flush()
    point = log.recovery_point
    append(log, b"a", b"b")
    size = len(batch(b"a", b"b"))
    path = log.segments[-1].path
    path.write_bytes(path.read_bytes()[:-1])
    again = open_log(tmp_path / "t-0", SMALL, recovery_point=point)
    assert again.recovery is not None
    assert (again.recovery.bytes_cut, again.end_offset, everything(again)) == (size - 1, point, data)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize(
    "garbage", [None, b"", b"\0" * 24, b"\xff" * 24, b"garbage", b"\0" * 10_485_756, bytes(range(24))]
)
@pytest.mark.parametrize("clean", [True, False])
def test_an_index_that_is_missing_or_garbage_is_rebuilt(
    tmp_path: Path, suffix: str, garbage: bytes | None, clean: bool
) -> None:
    log, data = written(tmp_path / "t-0", 60)
    log.close()
    for path in (tmp_path / "t-0").glob(f"*{suffix}"):
        if garbage is None:
            path.unlink()
        else:
            path.write_bytes(garbage)
    again = open_log(tmp_path / "t-0", SMALL, clean=clean, recovery_point=120)
    assert everything(again) == data
    for offset in range(again.end_offset):
        found = again.read(offset, 1)
        assert found is not None
    append(again, b"a")
    assert again.recovery is None


def test_an_index_that_points_into_the_middle_of_batches_is_rebuilt_when_it_is_used(tmp_path: Path) -> None:
    log, data = written(tmp_path / "t-0", 60)
    log.close()
    before = index_bytes(tmp_path / "t-0")
    for path in (tmp_path / "t-0").glob("*.index"):
        entries = bytearray(path.read_bytes())
        for position in range(7, len(entries), 8):
            entries[position] ^= 0x0F
        path.write_bytes(entries)
    again = open_log(tmp_path / "t-0", SMALL, recovery_point=120)
    for offset in range(again.end_offset):
        found = again.read(offset, 200)
        assert found is not None
    assert everything(again) == data
    again.close()
    assert index_bytes(tmp_path / "t-0") == before


def test_temporary_files_of_a_crash_are_removed(tmp_path: Path) -> None:
    log, data = written(tmp_path / "t-0")
    log.close()
    names = {path.name for path in (tmp_path / "t-0").iterdir()}
    for name in ("00000000000000000000.log.deleted", "00000000000000009999.index", "leader-epoch-checkpoint.tmp"):
        (tmp_path / "t-0" / name).write_bytes(b"x" * 16)
    again = open_log(tmp_path / "t-0", SMALL, clean=True)
    assert {path.name for path in (tmp_path / "t-0").iterdir()} == names
    assert everything(again) == data


def test_an_empty_last_segment_keeps_the_end_of_the_log(tmp_path: Path) -> None:
    log, _ = written(tmp_path / "t-0", 3)
    log.close()
    (tmp_path / "t-0" / "00000000000000000006.log").touch()
    for clean in (True, False):
        assert open_log(tmp_path / "t-0", SMALL, clean=clean).end_offset == 6


def test_an_unrecorded_gap_between_segments_is_skipped(tmp_path: Path) -> None:
    log, _ = written(tmp_path / "t-0", 100)
    log.close()
    (log.directory / "segment-succession").unlink()
    gone, after = log.segments[1], log.segments[2]
    gone.delete()
    again = open_log(tmp_path / "t-0", SMALL, clean=True)
    found = again.read(gone.base_offset, 1)
    assert found is not None
    assert (found.position, again.segments[1].base_offset) == (0, after.base_offset)


def test_leader_epochs_are_rebuilt_from_the_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for epoch in (0, 2, 5):
        log.append(batch(b"a"), leader_epoch=epoch, now_ms=NOW)
    assert not (tmp_path / "t-0" / "leader-epoch-checkpoint").exists()
    assert open_log(tmp_path / "t-0").epochs.entries == [(0, 0), (2, 1), (5, 2)]


def test_leader_epochs_of_a_truncated_tail_are_removed(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for epoch in (0, 5):
        log.append(batch(b"a"), leader_epoch=epoch, now_ms=NOW)
    path = log.segments[-1].path
    path.write_bytes(path.read_bytes()[:-1])
    assert open_log(tmp_path / "t-0").epochs.entries == [(0, 0)]


def test_a_batch_damaged_in_the_middle_stops_reading_there_and_not_before(tmp_path: Path) -> None:
    log, data = written(tmp_path / "t-0", 20, LogConfig(index_interval_bytes=300))
    log.close()
    headers = list(iter_headers(data))
    position, header = headers[10]
    path = tmp_path / "t-0" / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    content[position : position + header.size_bytes] = bytes(header.size_bytes)
    path.write_bytes(content)
    again = open_log(tmp_path / "t-0", LogConfig(index_interval_bytes=300), clean=True)
    assert again.read(0, 10**6) is not None
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match=f"position {position}"):
            again.read(header.base_offset, 10**6)


def test_a_restart_after_a_crash_reads_only_unflushed_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = written(tmp_path / "t-0", 1000, LogConfig(index_interval_bytes=300))
    log.flush()
    point = log.recovery_point
    for _ in range(5):
        append(log, b"a")
    walked: list[tuple[int, int]] = []

    def counting(file: OpenFile, position: int, end: int, expected: int, *others: Any, **more: Any) -> Iterator[Any]:
        walked.append((expected, end - position))
        return walk_by_checksums(file, position, end, expected, *others, **more)

    monkeypatch.setattr("ottla.storage.recovery.log_loader.walk_by_checksums", counting)
    again = open_log(tmp_path / "t-0", LogConfig(index_interval_bytes=300), recovery_point=point)
    assert again.end_offset == point + 5
    ((first, size_bytes),) = walked
    assert point - 20 < first <= point
    assert 5 * len(batch(b"a")) <= size_bytes < 15 * len(batch(b"a"))


@pytest.mark.parametrize("step", range(1, 12))
def test_an_interrupted_deletion_leaves_a_whole_partition_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    DataDirectory.open(tmp_path, node_id=1).close(clean=False)
    log, data = written(tmp_path / "t-0", 60)
    log.close()
    left = [step]

    def dying(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*arguments: Any, **more: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt  # the process dies: nothing after this is done
            return real(*arguments, **more)

        return call

    with monkeypatch.context() as patch:
        for name in ("rename", "unlink", "rmdir", "fsync"):
            patch.setattr(os, name, dying(name))
        try:
            log.delete()
        except KeyboardInterrupt:
            pass
    directory = DataDirectory.open(tmp_path, node_id=1)
    found = directory.logs()
    if found:
        assert step == 1
        assert everything(open_log(tmp_path / "t-0", SMALL, clean=True)) == data
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [str(partition) for partition in found]
    directory.close(clean=False)


def test_the_epoch_of_a_fully_truncated_leader_is_removed(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    log.append(batch(b"a"), leader_epoch=0, now_ms=NOW)
    log.append(batch(b"b"), leader_epoch=5, now_ms=NOW)
    log.flush()
    path = log.segments[-1].path
    path.write_bytes(path.read_bytes()[:-1])
    again = open_log(tmp_path / "t-0")
    assert again.end_offset == 1
    assert again.epochs.entries == [(0, 0)]


EPOCH_PLACE = 12
"""The position of the leader epoch in a batch, which the CRC does not cover."""


def flipped_epoch(path: Path, number: int, bit: int) -> None:
    """Flip a bit in the leader epoch of a batch."""
    data = bytearray(path.read_bytes())
    position, _ = list(iter_headers(data))[number]
    data[position + EPOCH_PLACE + 3 - bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


@settings(deadline=None, max_examples=40)
@given(
    epochs=st.lists(st.integers(1, 6), min_size=2, max_size=12).map(sorted),
    number=st.integers(0, 10),
    bit=st.integers(0, 31),
    more=st.booleans(),
)
@example(epochs=[1, 2, 4, 4], number=2, bit=2, more=False)
@example(epochs=[1, 1, 1, 1], number=1, bit=1, more=False)
@example(epochs=[1, 1, 2, 2], number=1, bit=2, more=True)
@example(epochs=[1, 3, 3, 3, 3], number=3, bit=1, more=True)
def test_a_flipped_leader_epoch_loses_at_most_the_ambiguous_batch(
    tmp_path_factory: pytest.TempPathFactory, epochs: list[int], number: int, bit: int, more: bool
) -> None:
    folder = tmp_path_factory.mktemp("log") / "t-0"
    epochs = [*epochs]
    log = open_log(folder, LogConfig(segment_bytes=300))
    for epoch in epochs:
        log.append(batch(b"a"), leader_epoch=epoch, now_ms=NOW)
    number %= len(epochs) - 1  # not the last: nothing contradicts that one
    segment = log.segments[log._list.number_of(number)]
    flipped_epoch(segment.path, number - segment.base_offset, bit)
    epochs[number] ^= 1 << bit
    suspects = {one for one in range(len(epochs)) if (rest := epochs[:one] + epochs[one + 1 :]) == sorted(rest)}
    again = open_log(folder, LogConfig(segment_bytes=300))
    if more:
        again.append(batch(b"b"), leader_epoch=epochs[-1], now_ms=NOW)
        again.flush()
        again = open_log(folder, LogConfig(segment_bytes=300), recovery_point=again.end_offset)
    for offset in range(again.end_offset):
        if offset not in suspects:
            assert bytes_of(again, offset), offset


def test_a_raised_leader_epoch_at_the_end_is_reported_after_more_appends(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for _ in range(3):
        log.append(batch(b"a"), leader_epoch=5, now_ms=NOW)
    flipped_epoch(log.segments[0].path, 2, 1)
    again = open_log(tmp_path / "t-0")
    assert again.epochs.entries == [(5, 0), (7, 2)]
    again.append(batch(b"b"), leader_epoch=5, now_ms=NOW)
    assert again.epochs.entries == [(5, 0)]
    again.close()
    again = open_log(tmp_path / "t-0", clean=True, recovery_point=4)
    assert bytes_of(again, 3)
    with pytest.raises(DamagedLogError, match=r"offset 2: .*leader epoch 7, .*seek to offset 3"):
        again.read(2, 1)
