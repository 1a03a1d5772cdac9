"""Compaction: the kept records and the written bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ottla.errors import CorruptRecordError
from ottla.records.batch import HEADER_BYTES, iter_headers, parse_header
from ottla.records.compression import Codec
from ottla.settings_class import changed
from ottla.storage.cleaning.cleaner import BATCH_COST, PIECE_BYTES
from ottla.storage.cleaning.key_map import ENTRY_BYTES
from ottla.storage.cleaning.log_cleaning import plan_log_compaction
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, everything, open_log
from tests.storage.compacting import COMPACT, compact, kept, one_pass, put, roll

DAY_MS = 86_400_000


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return open_log(tmp_path / "t-0", COMPACT)


@pytest.mark.behaviour("B2")
def test_the_last_record_of_each_key_stays_at_its_offset(log: Log) -> None:
    for value in (b"1", b"2", b"3"):
        put(log, (b"a", value), (b"b", value))
    put(log, (b"a", b"4"))
    roll(log)
    assert compact(log) == 7
    assert [(record.offset, record.key, record.value) for record in kept(log)] == [(5, b"b", b"3"), (6, b"a", b"4")]
    assert log.end_offset == 7


@pytest.mark.behaviour("B2")
def test_the_active_segment_is_not_compacted(log: Log) -> None:
    put(log, (b"a", b"1"))
    roll(log)
    put(log, (b"a", b"2"))
    put(log, (b"a", b"3"))
    compact(log)
    assert [record.value for record in kept(log)] == [b"1", b"2", b"3"]


@pytest.mark.behaviour("B2")
def test_a_tombstone_is_kept_for_its_retention_after_its_first_compaction(log: Log) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    put(log, (b"b", b"1"))
    roll(log)
    done = compact(log, now_ms=NOW + DAY_MS)
    assert [(record.key, record.value) for record in kept(log)] == [(b"a", None), (b"b", b"1")]
    for age, left in ((2 * DAY_MS - 1, [b"a", b"b"]), (2 * DAY_MS, [b"b"])):
        put(log, (b"b", b"1"))
        roll(log)
        done = compact(log, done, now_ms=NOW + age)
        assert sorted(record.key or b"" for record in kept(log)) == left


def test_a_tombstone_keeps_its_timestamp_when_the_base_timestamp_changes(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", None), timestamp=NOW - 10**9)
    roll(log)
    compact(log, now_ms=NOW)
    header = parse_header(everything(log))
    assert header.has_delete_horizon
    assert header.base_timestamp == NOW + COMPACT.delete_retention_ms
    assert header.max_timestamp == NOW - 10**9 + 1
    assert [record.timestamp for record in kept(log)] == [NOW - 10**9, NOW - 10**9 + 1]


@pytest.mark.parametrize("codec", Codec)
def test_a_compacted_batch_keeps_its_offsets_codec_and_timestamps(log: Log, codec: Codec) -> None:
    put(log, (b"a", b"old"), (b"b", b"x" * 100), (b"c", b"old"), codec=codec)
    put(log, (b"c", b"new"), (b"a", b"new"))
    roll(log)
    compact(log)
    header = parse_header(everything(log))
    assert (header.base_offset, header.last_offset, header.count) == (0, 2, 1)
    assert header.codec == codec
    assert header.max_timestamp == NOW + 1
    assert [(record.offset, record.timestamp) for record in kept(log)] == [(1, NOW + 1), (3, NOW), (4, NOW + 1)]


def test_a_fully_compacted_log_keeps_its_end_offset(log: Log) -> None:
    put(log, (b"a", None))
    roll(log)
    done = compact(log)
    put(log, (b"a", None))
    roll(log)
    compact(log, done, now_ms=NOW + 2 * DAY_MS)
    put(log, (b"z", None))
    roll(log)
    compact(log, 2, now_ms=NOW + 4 * DAY_MS)
    assert [header.last_offset for _, header in iter_headers(everything(log))][-1] == 2
    again = open_log(log.directory, COMPACT)
    assert again.end_offset == 3


def test_records_without_a_key_are_removed_when_a_topic_becomes_compacted(log: Log) -> None:
    compacted = log.config
    log.config = changed(compacted, cleanup_policy=("delete",))
    put(log, (None, b"lost"), (b"a", b"1"))
    log.config = compacted
    roll(log)
    compact(log)
    assert [record.key for record in kept(log)] == [b"a"]


def test_more_keys_than_memory_has_room_for_take_several_passes(log: Log) -> None:
    keys = [b"%d" % number for number in range(100)]
    for value in (b"old", b"new"):
        for key in keys:
            put(log, (key, value))
    roll(log)
    compact(log, room_bytes=20 * ENTRY_BYTES)
    assert {record.key: record.value for record in kept(log)} == dict.fromkeys(keys, b"new")
    assert len(kept(log)) == 100


def test_small_segments_become_one(log: Log) -> None:
    for number in range(40):
        put(log, (b"%d" % (number % 3), b"x" * 50))
    roll(log)
    assert len(log.segments) == 6
    done = compact(log)
    put(log, (b"0", b"x" * 50))
    roll(log)
    compact(log, done)
    assert log.bases == [0, 41]
    files = sorted(path.name for path in log.directory.glob("*.log"))
    assert files == [f"{base:020d}.log" for base in log.bases]
    assert log.size_bytes == sum(path.stat().st_size for path in log.directory.glob("*.log"))


def test_segments_further_apart_than_31_bits_stay_apart(log: Log) -> None:
    for end in (0, 2**31 - 2, 2**31 + 10):
        log.end_offset = end
        put(log, (b"a%d" % end, b"1"))
        roll(log)
    compact(log)
    assert log.bases == [0, 2**31 - 1, 2**31 + 11]
    assert [record.offset for record in kept(log)] == [0, 2**31 - 2, 2**31 + 10]


def test_reads_during_a_compaction_return_the_old_records(log: Log) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    roll(log)
    piece = log.read(0, 1 << 20)
    assert piece is not None
    before = os.pread(piece.file.fileno(), piece.size, piece.position)
    compact(log)
    assert os.pread(piece.file.fileno(), piece.size, piece.position) == before
    assert [record.value for record in kept(log)] == [b"2"]


def test_unflushed_records_are_not_compacted(log: Log) -> None:
    put(log, (b"a", b"1"))
    log.begin_segment(NOW)
    assert plan_log_compaction(log, 0, NOW).dirty_bytes == 0
    log.flush()
    assert plan_log_compaction(log, 0, NOW).dirty_bytes > 0


def test_retention_waits_for_a_compaction_and_then_deletes_empty_segments_too(tmp_path: Path) -> None:
    config = LogConfig(cleanup_policy=("compact", "delete"), segment_bytes=1000, retention_ms=1000)
    log = open_log(tmp_path / "t-0", config)
    put(log, (b"a", b"1"))
    roll(log)
    log.cleaning = True
    assert log.retain(NOW + 5000) == []
    log.cleaning = False
    assert [segment.base_offset for segment in log.retain(NOW + 5000)] == [0]


def test_a_damaged_batch_is_reported_and_compaction_changes_nothing(log: Log) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    roll(log)
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError, match=rf"{path.name}, position {len(data) // 2}"):
        compact(log)
    assert path.read_bytes() == data


def test_indexes_find_everything_afterwards(log: Log) -> None:
    for number in range(60):
        put(log, (b"%d" % (number % 20), b"x" * 20), timestamp=NOW + number)
    roll(log)
    compact(log)
    again = open_log(log.directory, COMPACT, clean=True)
    for record in kept(log):
        found = again.read(record.offset, 1)
        assert found is not None
        header = parse_header(os.pread(found.file.fileno(), HEADER_BYTES, found.position))
        assert header.base_offset <= record.offset <= header.last_offset
        at = again.offset_for_timestamp(record.timestamp)
        assert at is not None
        assert at.offset == record.offset
    assert not again.segments[0].rebuilt


@pytest.mark.parametrize(
    ("settings", "due"),
    [
        ({}, False),
        ({"min_cleanable_dirty_ratio": 0.2}, True),
        ({"max_compaction_lag_ms": 1000}, True),
        ({"max_compaction_lag_ms": 100_000}, False),
        ({"min_cleanable_dirty_ratio": 0.2, "min_compaction_lag_ms": 100_000}, False),
    ],
)
def test_settings_decide_when_a_log_is_compacted(log: Log, settings: dict[str, float], due: bool) -> None:
    for number in range(6):
        put(log, (b"%d" % number, b"x" * 700))
    roll(log)
    done = 4
    config = LogConfig(cleanup_policy=("compact",), **settings)  # type: ignore[arg-type]
    log.config = config
    assert plan_log_compaction(log, done, NOW + 50_000).is_due(config) == due


def test_records_younger_than_the_lag_are_not_compacted(log: Log) -> None:
    put(log, (b"a", b"1"), timestamp=NOW)
    roll(log)
    put(log, (b"a", b"2"), timestamp=NOW + 100)
    roll(log)
    log.config = LogConfig(cleanup_policy=("compact",), min_compaction_lag_ms=1000)
    assert plan_log_compaction(log, 0, NOW + 1050).upper_bound == 1
    assert plan_log_compaction(log, 0, NOW + 1100).upper_bound == 2


def test_the_epoch_of_a_fully_compacted_leader_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path / "t-0", COMPACT)
    for epoch, key in enumerate((b"a", b"b", b"b", b"c")):
        put(log, (key, b"1"), leader_epoch=epoch)
        roll(log)
    compact(log)
    log.close()
    assert open_log(tmp_path / "t-0", COMPACT).epochs.entries == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert caplog.messages == []


def test_compaction_yields_after_each_small_piece(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", changed(COMPACT, segment_bytes=1 << 20))
    for number in range(300):
        put(log, (b"%d" % (number % 7), bytes(5_000)))
    roll(log)
    pieces: list[int] = []
    one_pass(log, 0, NOW, 1 << 16, pieces.append)
    assert sum(pieces) > 2 * 300 * 5_000  # read for its keys, and once more to be written
    assert max(pieces) < PIECE_BYTES + BATCH_COST + 5_100


def with_gaps(path: Path) -> Log:
    """A log of which a cleaning left the last of each key, with offsets missing between its segments."""
    log = open_log(path, COMPACT, committed=0)
    for number in range(60):
        put(log, (b"again" if number % 2 else b"%d" % number, bytes(150)))
    log.advance_high_watermark(log.end_offset)
    roll(log)
    put(log, (b"last", b"value"))
    compact(log)
    assert max(header.next_offset for _, header in iter_headers(log.segments[0].path.read_bytes())) < log.bases[1]
    return log


def test_offsets_removed_by_compaction_are_not_taken_for_a_torn_end_after_a_crash(tmp_path: Path) -> None:
    end = with_gaps(tmp_path / "t-0").end_offset
    log = open_log(tmp_path / "t-0", COMPACT, committed=0)
    assert (log.torn_at, log.fallen_short, log.truncate_torn(now_ms=NOW)) == (None, None, end)


def test_offsets_missing_at_the_leader_are_not_taken_for_a_torn_end_after_a_crash(tmp_path: Path) -> None:
    leader = with_gaps(tmp_path / "leader" / "t-0")
    copy = open_log(tmp_path / "t-0", LogConfig(segment_bytes=100), committed=0)
    copy.append_as_is(everything(leader), leader_epoch=0, now_ms=NOW)
    assert len(copy.segments) > 1
    log = open_log(tmp_path / "t-0", COMPACT, committed=0)
    assert (log.torn_at, log.fallen_short, log.truncate_torn(now_ms=NOW)) == (None, None, leader.end_offset)
