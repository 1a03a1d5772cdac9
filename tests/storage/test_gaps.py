"""A segment is missing between others and there is no manifest: its offsets are reported if only a loss explains the gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.model import TopicPartition
from ottla.records.batch import iter_headers
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.inspection import find
from ottla.storage.inspection.partition_check import PartitionCheck
from ottla.storage.log import Log
from ottla.storage.segments import succession
from ottla.storage.segments.gaps import end_offset_of, missing_offsets
from tests.storage.batches import NOW, append
from tests.storage.test_inspection import CONFIG

T0 = TopicPartition("t", 0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A closed data directory with one partition of several segments, as written by a broker without manifests."""
    directory = DataDirectory.open(tmp_path, node_id=1)
    log = directory.open_log(T0, CONFIG, now_ms=NOW)
    for number in range(60):
        append(log, b"x" * 100, b"y" * (number % 7), timestamps=[NOW + number] * 2)
    directory.close()
    (tmp_path / "t-0" / succession.FILE_NAME).unlink()
    return tmp_path


def logs(data: Path) -> list[Path]:
    return sorted((data / "t-0").glob("*.log"))


def remove_second_segment(data: Path) -> tuple[int, int]:
    """Take the second segment away: its first offset, and that of the one behind it."""
    _, second, third, *_ = logs(data)
    for path in (data / "t-0").glob(f"{second.stem}.*"):
        path.unlink()
    return int(second.stem), int(third.stem)


def check_of(data: Path) -> PartitionCheck:
    return next(iter(find(data).run(lambda size: None)))


def test_a_log_without_a_gap_reports_no_gap(data: Path) -> None:
    assert len(logs(data)) == 3
    assert list(missing_offsets(data / "t-0")) == []
    assert (check_of(data).faults, check_of(data).notes) == ([], [])


def test_a_missing_segment_is_reported_with_its_offsets(data: Path) -> None:
    first, behind = remove_second_segment(data)
    (fault,) = check_of(data).faults
    assert (fault.file, fault.offset) == (logs(data)[0], first)
    assert f"offsets {first} to {behind - 1} are in no segment" in fault.reason
    assert "restore them from a backup" in fault.reason


@pytest.mark.parametrize("index", [None, b"", b"\xff" * 8, b"\0" * 16, b"\0\0\0\1\0\0\0\2"])
def test_a_bad_index_neither_hides_nor_adds_a_gap(data: Path, index: bytes | None) -> None:
    for path in logs(data):
        path.with_suffix(".index").unlink() if index is None else path.with_suffix(".index").write_bytes(index)
    assert list(missing_offsets(data / "t-0")) == []
    first, behind = remove_second_segment(data)
    (missing,) = missing_offsets(data / "t-0")
    assert missing == (logs(data)[0], first, behind)


def test_a_compacted_log_may_have_gaps(data: Path) -> None:
    remove_second_segment(data)
    directory = DataDirectory.open(data, node_id=1)
    directory.record_cleaned(T0, 100)()
    directory.close()
    assert (check_of(data).faults, check_of(data).notes) == ([], [])


def test_a_folder_alone_does_not_show_whether_it_was_compacted(data: Path) -> None:
    first, _ = remove_second_segment(data)
    (data / "meta.properties").unlink()
    check = check_of(data)
    assert check.faults == []
    assert f"offsets {first} to" in check.notes[0].text


def test_bytes_removed_by_a_repair_are_not_reported_again(data: Path) -> None:
    remove_second_segment(data)
    first = logs(data)[0]
    first.with_name(f"{first.name}.100-50.damaged").touch()
    assert list(missing_offsets(data / "t-0")) == []


def test_a_torn_end_of_a_segment_is_no_gap_but_damage(data: Path) -> None:
    first = logs(data)[0]
    first.write_bytes(first.read_bytes()[:-1])
    assert end_offset_of(first) is None
    assert list(missing_offsets(data / "t-0")) == []


def test_a_segment_that_ends_too_early_at_a_batch_boundary_is_reported(data: Path) -> None:
    first, second, *_ = logs(data)
    end = end_offset_of(first)
    assert end == int(second.stem)
    *_, (position, header) = iter_headers(first.read_bytes())
    first.write_bytes(first.read_bytes()[:position])
    (missing,) = missing_offsets(data / "t-0")
    assert missing == (first, header.base_offset, end)


def test_a_running_log_may_delete_its_oldest_segments_during_the_check(data: Path) -> None:
    log = Log.open(data / "t-0", CONFIG, now_ms=NOW, clean=True)
    log.advance_start(log.bases[2])
    log.retain(NOW)
    assert list(missing_offsets(data / "t-0")) == []
