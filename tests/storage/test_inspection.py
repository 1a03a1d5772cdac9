"""Damage of every kind, planted in a log and found from outside."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from ottla.errors import ConfigError
from ottla.model import HasFileno, TopicPartition
from ottla.records.batch import HEADER_BYTES, iter_headers
from ottla.records.crc32c import crc32c
from ottla.storage.batches.walk import Gap, StoredBatch, walk
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.inspection import FileFault, dump, find
from ottla.storage.inspection.directory_check import find_quick_faults
from ottla.storage.inspection.partition_check import PartitionCheck
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_snapshot import ENTRY, HEAD
from ottla.storage.state_log.snapshot import SnapshotId, write_state
from ottla.storage.state_log.voter import SoleVoter
from tests.storage.batches import NOW, append, batch, open_log

CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=300)
Damage = Callable[[Path], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition of several segments, closed."""
    log = open_log(tmp_path / "t-0", CONFIG)
    for number in range(60):
        append(log, b"x" * 100, b"y" * (number % 7), timestamps=[NOW + number] * 2)
    log.close()
    return log.directory


def checked(folder: Path, *, live: bool = False, deep: bool = False) -> PartitionCheck:
    check = PartitionCheck(folder, live, deep)
    check.run(lambda size: None)
    return check


def faults(folder: Path) -> list[FileFault]:
    return checked(folder).faults


def first_log(folder: Path) -> Path:
    return min(folder.glob("*.log"))


def last_log(folder: Path) -> Path:
    return max(folder.glob("*.log"))


def third_batch(path: Path) -> tuple[int, int, int]:
    """Position, size and offset."""
    position, header = list(iter_headers(path.read_bytes()))[2]
    return position, header.size_bytes, header.base_offset


def overwrite(path: Path, position: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def test_a_log_without_damage_is_whole_and_counted(folder: Path) -> None:
    reported: list[int] = []
    check = PartitionCheck(folder, live=False, deep=True)
    check.run(reported.append)
    assert (check.faults, check.notes) == ([], [])
    assert (check.batches, check.records, check.start_offset, check.end_offset) == (60, 120, 0, 120)
    assert sum(reported) == check.bytes == sum(path.stat().st_size for path in folder.glob("*.log"))


def test_a_flipped_byte_is_found_with_file_offset_position_and_bytes(folder: Path) -> None:
    path = first_log(folder)
    position, size, offset = third_batch(path)
    overwrite(path, position + HEADER_BYTES + 5, b"?")
    check = checked(folder)
    (fault,) = check.faults
    assert (fault.file, fault.position, fault.offset, fault.bytes) == (path, position, offset, size)
    assert "has CRC" in fault.reason
    assert check.batches == 59
    assert str(fault).startswith(f"{path}: position {position}, offset {offset}, {size} bytes: the batch has CRC")


@pytest.mark.parametrize("at", range(16))
def test_a_garbled_head_is_stepped_over_to_the_next_whole_batch(folder: Path, at: int) -> None:
    path = first_log(folder)
    position, size, _ = third_batch(path)
    overwrite(path, position + at, b"\x5a")
    check = checked(folder)
    if 12 <= at < 16:
        (fault,) = check.faults
        assert (fault.position, fault.bytes) == (position, size)
        assert "leader epoch" in fault.reason  # which no CRC covers
    else:
        assert (check.faults[0].position, check.faults[0].bytes) == (position, size)
        assert check.batches >= 59


def test_zeros_in_the_middle_are_found_and_the_rest_is_checked(folder: Path) -> None:
    path = first_log(folder)
    position, size, offset = third_batch(path)
    overwrite(path, position, bytes(size * 2))
    check = checked(folder)
    assert (check.faults[0].position, check.faults[0].offset) == (position, offset)
    assert (check.batches, check.end_offset, len(check.faults)) == (58, 120, 1)


def test_a_torn_tail_is_found(folder: Path) -> None:
    path = last_log(folder)
    path.write_bytes(path.read_bytes()[:-5])
    fault = faults(folder)[0]
    assert (fault.file, fault.offset) == (path, 118)
    assert "is torn" in fault.reason
    assert "the next start of a broker cuts them off" in fault.reason


def test_a_torn_end_of_an_earlier_segment_is_permanent_damage(folder: Path) -> None:
    path = first_log(folder)
    path.write_bytes(path.read_bytes()[:-5])
    assert "cuts" not in faults(folder)[0].reason


def test_a_batch_with_a_lower_offset_than_its_predecessor_is_found(folder: Path) -> None:
    path = last_log(folder)
    end = path.stat().st_size
    path.write_bytes(path.read_bytes() + batch(b"old"))
    (fault,) = faults(folder)
    assert (fault.position, fault.offset) == (end, 0)
    assert "expected 120 or more" in fault.reason


def test_a_segment_that_overlaps_the_one_before_is_found(folder: Path) -> None:
    path = last_log(folder)
    (folder / f"{int(path.stem) - 1:020d}.log").write_bytes(b"")
    assert any("begins before the end" in fault.reason for fault in faults(folder))


@pytest.mark.parametrize(
    ("suffix", "damage", "reason"),
    [
        (".index", lambda data: data[:-3], "multiple of 8 bytes"),
        (".index", lambda data: data[:7] + bytes([data[7] ^ 1]) + data[8:], "where no whole batch begins"),
        (".index", lambda data: data[8:16] + data[:8], "not after the one before"),
        (".index", lambda data: data[:3] + b"\x77" + data[4:], "points at the batch of offsets"),
        (".timeindex", lambda data: data[:-3], "multiple of 12 bytes"),
        (".timeindex", lambda data: data[:7] + bytes([data[7] ^ 1]) + data[8:], "the entry has timestamp"),
        (".timeindex", lambda data: data[12:24] + data[:12], "not after the one before"),
        (".timeindex", lambda data: data[:-2] + b"\x77\x77", "an offset that no whole batch holds"),
    ],
)
def test_a_wrong_index_entry_is_found(folder: Path, suffix: str, damage: Callable[[bytes], bytes], reason: str) -> None:
    path = first_log(folder).with_suffix(suffix)
    path.write_bytes(damage(path.read_bytes()))
    found = faults(folder)
    assert {fault.file for fault in found} == {path}
    assert reason in found[0].reason


def test_a_missing_index_is_logged_but_is_no_damage(folder: Path) -> None:
    first_log(folder).with_suffix(".index").unlink()
    check = checked(folder)
    assert check.faults == []
    assert "is missing" in str(check.notes[0])


def test_preallocated_index_space_is_no_damage(folder: Path) -> None:
    for suffix in (".index", ".timeindex"):
        path = last_log(folder).with_suffix(suffix)
        path.write_bytes(path.read_bytes().ljust(10_485_720, b"\0"))
    assert faults(folder) == []


def snapshot(*last_offsets: int) -> bytes:
    body = struct.pack(">i", len(last_offsets))
    body += b"".join(ENTRY.pack(7, 0, 3, offset, 1, NOW, -1, -1) for offset in last_offsets)
    return struct.pack(">hI", 1, crc32c(body)) + body


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("00000000000000000120.snapshot", snapshot(5)[:-1] + b"?", "has CRC"),
        ("00000000000000000120.snapshot", snapshot()[: HEAD.size - 1], "at least 10 bytes"),
        ("00000000000000000120.snapshot", snapshot(500), "speaks of offset 500, the log ends at 120"),
        ("00000000000000000000.txnindex", bytes(33), "multiple of 34 bytes"),
        ("00000000000000000000.txnindex", struct.pack(">hqqqq", 0, 1, 9, 3, 2), "begins at offset 9 and ends at 3"),
        ("leader-epoch-checkpoint", b"0\n2\n0 0\n", "announces 2 rows"),
        ("leader-epoch-checkpoint", b"0\n1\n0 x\n", "has a row '0 x'"),
        ("partition.metadata", b"\0\0\0", "has no version"),
        ("partition.metadata", b"version: 0\n", "has no topic_id"),
        ("partition.metadata", b"version: 0\ntopic_id: AAAA\n", "AAAA"),
    ],
)
def test_damage_in_state_files_is_found(folder: Path, name: str, content: bytes, reason: str) -> None:
    (folder / name).write_bytes(content)
    (fault,) = faults(folder)
    assert fault.file == folder / name
    assert reason in fault.reason


def test_valid_state_files_are_no_damage(folder: Path) -> None:
    (folder / "00000000000000000120.snapshot").write_bytes(snapshot(5, 119))
    assert faults(folder) == []
    (_, second) = dump(folder / "00000000000000000120.snapshot", None)
    assert (second["producerId"], second["lastSequence"], second["lastOffset"]) == (7, 3, 119)


def test_records_that_cannot_be_decompressed_are_found_on_request(folder: Path) -> None:
    data = bytearray(batch(b"a", b"b"))
    data[8:12] = struct.pack(">i", len(data) - 12 - 1)
    data = data[:-1]
    struct.pack_into(">q", data, 0, 120)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    path = last_log(folder)
    path.write_bytes(path.read_bytes() + data)
    assert checked(folder).faults == []
    (fault,) = checked(folder, deep=True).faults
    assert fault.offset == 120


def test_lost_flushed_records_are_found(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path, node_id=1)
    log = directory.open_log(TopicPartition("t", 0), LogConfig(), now_ms=NOW)
    append(log, b"a")
    append(log, b"b")
    directory.close()
    assert [check.faults for check in find(tmp_path).run(lambda size: None)] == [[], []]
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:80])
    *_, own = find(tmp_path).run(lambda size: None)
    assert "t-0 was on the disk up to offset 2 and ends at 1" in own.faults[0].reason


def test_a_tail_that_is_being_written_is_no_damage(folder: Path) -> None:
    path = last_log(folder)
    path.write_bytes(path.read_bytes() + batch(b"half")[:-9])
    check = checked(folder, live=True)
    assert check.faults == []
    assert "are still being written" in str(check.notes[0])


def test_a_tail_completed_during_the_check_is_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, more = last_log(folder), bytearray(batch(b"late"))
    struct.pack_into(">q", more, 0, 120)
    path.write_bytes(path.read_bytes() + more[:30])

    def completing(file: HasFileno, position: int, end: int) -> list[StoredBatch | Gap]:
        found = list(walk(file, position, end))
        if isinstance(found[-1], Gap):
            with path.open("ab") as log:
                log.write(more[30:])
        return found

    monkeypatch.setattr("ottla.storage.inspection.partition_check.walk", completing)
    check = checked(folder, live=True)
    assert (check.faults, check.notes, check.end_offset) == ([], [], 121)


def test_a_path_without_logs_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no logs: name a data directory"):
        find(tmp_path)
    (tmp_path / "x.txt").write_text("a")
    with pytest.raises(ConfigError, match="is not a file of a log"):
        list(dump(tmp_path / "x.txt", None))


def test_a_dump_shows_damage_and_the_batches_after_it(folder: Path) -> None:
    path = first_log(folder)
    position, size, _ = third_batch(path)
    overwrite(path, position + HEADER_BYTES + 5, b"?")
    entries = list(dump(path, None))
    (bad,) = (entry for entry in entries if not entry["isvalid"])
    assert (bad["position"], bad["size"]) == (position, size)
    assert entries[3]["isvalid"]


def test_a_torn_metadata_snapshot_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    open_log(folder).close()
    path = folder / SnapshotId(0, 0).file_name
    write_state(folder, SnapshotId(0, 0), [b"a" * 100], 0, SoleVoter(1, UUID(int=100)), sync=False)
    draft = folder / f"{SnapshotId(5, 0).file_name}.part"
    draft.write_bytes(b"half")
    assert not list(find_quick_faults(folder, settled=True))
    path.write_bytes(path.read_bytes()[:-7])
    (fault,) = find_quick_faults(folder, settled=True)
    assert fault.file == path
    assert "is not whole: " in fault.reason
    assert draft.exists()
