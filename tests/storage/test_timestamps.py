from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from ottla.model import OffsetAndTimestamp
from ottla.records.batch import parse_header
from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.segment import find_record
from tests.storage.batches import GZIP, NOW, append, batch, open_log

LATEST_BYTE = 35
"""The position of the highest byte of a batch's largest timestamp."""


def test_the_first_record_at_or_after_a_timestamp_is_found_inside_its_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a", b"b", b"c", timestamps=[NOW, NOW + 10, NOW + 20])
    append(log, b"d", b"e", timestamps=[NOW + 5, NOW + 30])
    assert log.offset_for_timestamp(0) == (0, NOW, 0)
    assert log.offset_for_timestamp(NOW + 5) == (1, NOW + 10, 0)
    assert log.offset_for_timestamp(NOW + 20) == (2, NOW + 20, 0)
    assert log.offset_for_timestamp(NOW + 21) == (4, NOW + 30, 0)
    assert log.offset_for_timestamp(NOW + 31) is None


def test_an_empty_log_has_no_record_at_any_time(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp() is None


@pytest.mark.parametrize("reopened", [None, True, False])
def test_every_timestamp_finds_what_a_search_of_all_records_finds(tmp_path: Path, reopened: bool | None) -> None:
    chance = random.Random(7)
    config = LogConfig(segment_bytes=5000, index_interval_bytes=300)
    log = open_log(tmp_path / "t-0", config)
    records: list[int] = []
    for turn in range(150):
        times = [NOW + turn * 5 + chance.randrange(-100, 100) for _ in range(chance.randrange(1, 5))]
        append(log, *[b"x" * chance.randrange(50)] * len(times), timestamps=times)
        records += times
    if reopened is not None:
        log.close()
        log = open_log(tmp_path / "t-0", config, clean=reopened)
    log.advance_start(37)
    for timestamp in range(NOW - 110, max(records) + 3):
        expected = [(o, t, 0) for o, t in enumerate(records) if t >= timestamp and o >= 37]
        assert log.offset_for_timestamp(timestamp) == (expected[0] if expected else None)
    assert log.max_timestamp() == (records.index(max(records)), max(records), 0)


@pytest.mark.parametrize("entries", range(3))
def test_a_time_index_with_a_lost_end_is_rebuilt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, entries: int
) -> None:
    config = LogConfig(segment_bytes=1500, index_interval_bytes=100)
    log = open_log(tmp_path, config)
    for number in range(50):
        append(log, b"x" * 20, timestamps=[NOW + number])
    log.close()
    for path in tmp_path.glob("*.timeindex"):
        os.truncate(path, 12 * entries)
    again = open_log(tmp_path, config, clean=True, recovery_point=50)
    assert [again.offset_for_timestamp(NOW + number) for number in range(50)] == [
        OffsetAndTimestamp(number, NOW + number, 0) for number in range(50)
    ]
    assert "00.timeindex does not match the timestamps of its log; rebuilding it" in caplog.text


def test_a_damaged_batch_with_a_later_time_does_not_rebuild_the_time_index(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = LogConfig(index_interval_bytes=1)
    log = open_log(tmp_path, config)
    for number in range(5):
        append(log, b"x", timestamps=[NOW - number])
    log.close()
    with log.segments[0].path.open("r+b") as file:
        file.seek(log.segments[0].size // 5 + LATEST_BYTE)
        file.write(b"\x7f")
    again = open_log(tmp_path, config, clean=True, recovery_point=5)
    assert again.segments[0].largest_timestamp() == NOW
    assert "rebuilding it" not in caplog.text


def test_a_search_by_time_names_an_unreadable_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for number in range(3):
        append(log, b"x", timestamps=[NOW + number])
    with log.segments[0].path.open("r+b") as file:
        file.seek(log.segments[0].size // 3 * 2 - 1)
        file.write(b"\xff")
    with pytest.raises(DamagedLogError, match=r"t-0, offset 1: .* are damaged: .* CRC .*; seek to offset 2 to go on"):
        log.offset_for_timestamp(NOW + 1)
    assert log.offset_for_timestamp(NOW + 2) == OffsetAndTimestamp(2, NOW + 2, 0)


def test_a_search_by_time_returns_the_leader_epoch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a")
    log.append(batch(b"b", timestamps=[NOW + 5]), leader_epoch=3, now_ms=NOW)
    assert log.offset_for_timestamp(NOW + 5) == OffsetAndTimestamp(1, NOW + 5, 3)


def test_records_stamped_by_the_broker_have_the_time_of_their_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(message_timestamp_type="LogAppendTime"))
    append(log, b"a", b"b", now_ms=NOW + 100)
    append(log, b"c", b"d", now_ms=NOW + 200)
    assert log.offset_for_timestamp(NOW + 1) == (0, NOW + 100, 0)
    assert log.offset_for_timestamp(NOW + 101) == (2, NOW + 200, 0)
    log.advance_start(3)
    assert log.offset_for_timestamp(NOW + 101) == (3, NOW + 200, 0)
    assert log.offset_for_timestamp(NOW + 201) is None


def test_a_record_is_found_inside_a_compressed_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a")
    times = [NOW + 10 * row for row in range(100)]
    log.append(batch(*[b"b"] * 100, timestamps=times, attributes=GZIP), leader_epoch=0, now_ms=NOW)
    assert log.offset_for_timestamp(NOW + 501) == (1 + 51, NOW + 510, 0)
    assert log.max_timestamp() == (100, NOW + 990, 0)


def test_the_end_of_a_transaction_is_found_by_its_time_too() -> None:
    control = batch(b"commit", timestamps=[NOW], attributes=0x30)
    header = parse_header(control)
    assert find_record(control, header, NOW, 0) == (0, NOW, -1)
    assert find_record(control, header, NOW + 1, 0) is None
    assert find_record(control, header, NOW, 1) is None
