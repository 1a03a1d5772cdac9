from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.errors import KafkaError
from ottla.records.batch import parse_header
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import Origin
from ottla.storage.segments.retention import SegmentAge, count_deletable
from tests.storage.batches import NOW, append, batch, bytes_of, everything, open_log

SIZE = len(batch(b"a"))
pytestmark = pytest.mark.behaviour("B2")


def daily(directory: Path, days: int = 6, **settings: object) -> Log:
    """A log with a segment for each two of its records, which are a day apart."""
    log = open_log(directory, LogConfig(segment_bytes=2 * SIZE, segment_ms=2**62, **settings))  # type: ignore[arg-type]
    for day in range(days):
        data = batch(b"a", timestamps=[NOW + day * 86_400_000])
        # Not appended as a client: records of clients may not be that far ahead of the clock.
        log.append(data, leader_epoch=0, now_ms=NOW, origin=Origin.COORDINATOR)
    return log


def test_segments_are_deleted_whole_when_their_last_record_is_older_than_retention_ms(tmp_path: Path) -> None:
    log = daily(tmp_path / "t-0", retention_ms=86_400_000)
    now = NOW + 4 * 86_400_000
    assert [segment.base_offset for segment in log.retain(now)] == [0]
    assert log.start_offset == 2
    assert log.retain(now) == []
    assert [segment.base_offset for segment in log.retain(now + 1)] == [2]
    assert sorted(path.name for path in (tmp_path / "t-0").glob("*.log")) == ["00000000000000000004.log"]


def test_segments_with_unreadable_timestamps_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    daily(tmp_path / "t-0", retention_ms=86_400_000).close()
    log = open_log(tmp_path / "t-0", LogConfig(retention_ms=86_400_000), clean=True)
    for segment in log.segments:
        segment.release()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", broken)
        with pytest.raises(KafkaError, match=r"cannot delete old segments in .*t-0: Input/output error"):
            log.retain(NOW + 4 * 86_400_000)
    assert log.start_offset == 0
    assert [segment.base_offset for segment in log.retain(NOW + 4 * 86_400_000)] == [0]


def test_a_segment_that_cannot_be_deleted_stays_and_is_deleted_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = daily(tmp_path / "t-0", retention_ms=86_400_000)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", broken)
        with pytest.raises(KafkaError, match=r"cannot delete old segments in .*t-0: Input/output error"):
            log.retain(NOW + 4 * 86_400_000)
    assert log.start_offset == 0
    assert log.size_bytes == sum(path.stat().st_size for path in (tmp_path / "t-0").glob("*.log"))
    assert [segment.base_offset for segment in log.retain(NOW + 4 * 86_400_000)] == [0]
    assert not [path for path in (tmp_path / "t-0").iterdir() if path.stem == "00000000000000000000"]


def broken(*_: object, **__: object) -> int:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_segments_are_deleted_whole_while_the_rest_exceeds_retention_bytes(tmp_path: Path) -> None:
    log = daily(tmp_path / "t-0", retention_ms=-1, retention_bytes=3 * SIZE)
    assert [segment.base_offset for segment in log.retain(NOW)] == [0]
    assert (log.start_offset, log.size_bytes) == (2, 4 * SIZE)


def test_a_compacted_log_loses_nothing_to_retention(tmp_path: Path) -> None:
    log = daily(tmp_path / "t-0", retention_ms=1, retention_bytes=1, cleanup_policy=("compact",))
    assert log.retain(NOW + 10**12) == []


def test_a_fully_expired_log_is_empty_and_keeps_its_end_offset(tmp_path: Path) -> None:
    log = daily(tmp_path / "t-0", retention_ms=1)
    assert len(log.retain(NOW + 10**12)) == 3
    assert (log.start_offset, log.end_offset, log.size_bytes, log.read(6, 100)) == (6, 6, 0, None)
    assert log.retain(NOW + 10**12) == []
    log.close()
    again = open_log(tmp_path / "t-0", log.config, clean=True)
    assert (again.start_offset, append(again, b"b")) == (6, 6)


def test_records_without_a_timestamp_are_as_old_as_their_file(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=2 * SIZE, retention_ms=1000))
    for _ in range(3):
        append(log, b"a", timestamps=[-1])
    written_ms = log.segments[0].path.stat().st_mtime_ns // 1_000_000
    assert log.retain(written_ms + 1000) == []
    assert len(log.retain(written_ms + 1001)) >= 1


def test_records_before_a_new_start_disappear_at_once_and_their_segments_with_the_next_retention(
    tmp_path: Path,
) -> None:
    log = daily(tmp_path / "t-0", retention_ms=-1)
    log.advance_start(3)
    with pytest.raises(KafkaError, match="OFFSET_OUT_OF_RANGE"):
        log.read(2, 100)
    assert parse_header(bytes_of(log, 3)).base_offset == 3
    assert [segment.base_offset for segment in log.retain(NOW)] == [0]
    assert log.start_offset == 3


def test_a_segment_that_ends_at_the_start_offset_is_deleted(tmp_path: Path) -> None:
    log = daily(tmp_path / "t-0", retention_ms=-1)
    log.advance_start(1)
    assert log.retain(NOW) == []
    log.advance_start(2)
    assert [segment.base_offset for segment in log.retain(NOW)] == [0]


def test_the_start_moves_only_forward_and_not_beyond_the_end(tmp_path: Path) -> None:
    log = daily(tmp_path / "t-0")
    log.advance_start(4)
    log.advance_start(2)
    assert log.start_offset == 4
    for offset in (7, -1):
        with pytest.raises(KafkaError, match=f"cannot delete up to offset {offset}"):
            log.advance_start(offset)
    log.advance_start(6)
    assert everything(log) == b""


def test_the_start_offset_survives_a_restart(tmp_path: Path) -> None:
    log = daily(tmp_path / "t-0")
    log.advance_start(3)
    log.close()
    assert open_log(tmp_path / "t-0", log.config, clean=True, start_offset=3).start_offset == 3


def test_slices_of_a_deleted_segment_can_still_be_sent(tmp_path: Path) -> None:
    log = daily(tmp_path / "t-0", retention_ms=1)
    found = log.read(0, 10**6)
    assert found is not None
    log.retain(NOW + 10**12)
    assert parse_header(os.pread(found.file.fileno(), found.size, found.position)).base_offset == 0


def ages(*timestamps: int) -> list[SegmentAge]:
    """Segments of 100 bytes and 10 records, with their largest timestamps."""
    return [SegmentAge(100, timestamp, 10 * (index + 1)) for index, timestamp in enumerate(timestamps)]


@pytest.mark.parametrize(
    ("settings", "now_ms", "count"),
    [
        ({"retention_ms": 1000}, 1000, 0),
        ({"retention_ms": 1000}, 1001, 1),
        ({"retention_ms": 1000}, 1500, 1),
        ({"retention_ms": 1000}, 1501, 2),
        ({"retention_ms": 0}, 0, 0),
        ({"retention_ms": 0}, 1, 1),
        ({"retention_ms": -1}, 10**12, 0),
        ({"retention_ms": 0, "cleanup_policy": ("compact",)}, 10**12, 0),
        ({"retention_ms": 0, "cleanup_policy": ("compact", "delete")}, 10**12, 3),
    ],
)
def test_a_segment_expires_with_its_last_record(settings: dict[str, Any], now_ms: int, count: int) -> None:
    config = LogConfig(**settings)
    assert count_deletable(ages(0, 500, 900), 300, config, start_offset=0, now_ms=now_ms) == count


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"retention_bytes": 201}, 0),
        ({"retention_bytes": 200}, 1),
        ({"retention_bytes": 101}, 1),
        ({"retention_bytes": 100}, 2),
        ({"retention_bytes": 1}, 2),
        ({"retention_bytes": 0}, 3),
        ({"retention_bytes": -1}, 0),
        ({"retention_bytes": 0, "cleanup_policy": ("compact",)}, 0),
    ],
)
def test_segments_are_deleted_while_the_rest_keeps_enough_bytes(settings: dict[str, Any], count: int) -> None:
    config = LogConfig(retention_ms=-1, **settings)
    assert count_deletable(ages(0, 0, 0), 300, config, start_offset=0, now_ms=0) == count


@pytest.mark.parametrize(("start", "count"), [(0, 0), (9, 0), (10, 1), (11, 1), (20, 2), (29, 2), (30, 3)])
def test_segments_that_end_before_the_start_offset_are_deleted(start: int, count: int) -> None:
    config = LogConfig(retention_ms=-1, cleanup_policy=("compact",))
    assert count_deletable(ages(0, 0, 0), 300, config, start_offset=start, now_ms=0) == count


@pytest.mark.parametrize(("high_watermark", "count"), [(0, 0), (9, 0), (10, 1), (29, 2), (30, 3)])
def test_uncommitted_records_are_kept_at_any_age_and_size(high_watermark: int, count: int) -> None:
    config = LogConfig(retention_ms=0, retention_bytes=0)
    found = count_deletable(ages(0, 0, 0), 300, config, start_offset=30, now_ms=10**12, high_watermark=high_watermark)
    assert found == count


def test_a_kept_segment_keeps_all_later_ones() -> None:
    assert count_deletable(ages(900, 0, 0), 300, LogConfig(retention_ms=1000), start_offset=0, now_ms=1500) == 0
