"""The bytes that a restart after a crash reads, and the state that it must reject."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.model import TopicPartition
from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.indexes.transaction_index import TransactionIndex
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_snapshot import snapshot_offsets, snapshot_path
from ottla.storage.producers.producer_state import AbortedTxn
from tests.storage.batches import NOW, append, everything, open_log, sized
from tests.storage.producing import end, send

CONFIG = LogConfig(segment_bytes=1 << 30, index_interval_bytes=4096)
SEGMENTS = LogConfig(segment_bytes=100_000, index_interval_bytes=4096)
FLIGHTS = TopicPartition("flights", 0)
BATCH_BYTES = 20_000
SLACK = 70_000
"""A block around a searched position, plus the distance of two index entries."""
Count = Callable[[], int]


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Count:
    """Return the bytes read since the last call."""
    counted, real = [0], os.pread

    def counting(fd: int, size: int, position: int) -> bytes:
        data = real(fd, size, position)
        counted[0] += len(data)
        return data

    def since() -> int:
        total, counted[0] = counted[0], 0
        return total

    monkeypatch.setattr(os, "pread", counting)
    return since


def fill(log: Log, batches: int) -> None:
    for _ in range(batches):
        log.append(sized(BATCH_BYTES), leader_epoch=0, now_ms=NOW)


def known(log: Log) -> Any:
    """The state of producers and transactions in a log."""
    aborted = log.find_aborted(0, 0, log.end_offset)
    entries = {id_: (entry.epoch, list(entry.batches)) for id_, entry in log.producers.entries.items()}
    return entries, log.producers.open, aborted, log.last_stable_offset


@pytest.mark.parametrize("config", [CONFIG, SEGMENTS])
def test_unflushed_records_are_read_once(tmp_path: Path, bytes_read: Count, config: LogConfig) -> None:
    log = open_log(tmp_path / "t-0", config)
    fill(log, 100)
    bytes_read()
    again = open_log(tmp_path / "t-0", config)
    assert again.end_offset == log.end_offset
    assert log.size_bytes <= bytes_read() <= log.size_bytes + SLACK


def test_flushed_records_are_not_read_after_a_checkpoint(tmp_path: Path, bytes_read: Count) -> None:
    directory = DataDirectory.open(tmp_path, node_id=1)
    log = directory.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    for _ in range(3):
        fill(log, 50)
        log.flush()
        directory.prepare_checkpoint()()
    fill(log, 5)
    log.flush()
    directory.checkpoint()
    directory.close(clean=False)
    bytes_read()
    again = DataDirectory.open(tmp_path, node_id=1)
    assert again.open_log(FLIGHTS, CONFIG, now_ms=NOW).end_offset == log.end_offset
    assert bytes_read() <= 6 * BATCH_BYTES + SLACK
    again.close(clean=False)


def test_only_headers_are_read_without_a_snapshot(tmp_path: Path, bytes_read: Count) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    fill(log, 100)
    log.flush()
    bytes_read()
    open_log(tmp_path / "t-0", CONFIG, recovery_point=log.recovery_point)
    assert bytes_read() <= 100 * 4096 + BATCH_BYTES + SLACK


def test_preallocated_indexes_after_a_crash_cause_no_read_of_flushed_records(
    tmp_path: Path, bytes_read: Count, caplog: pytest.LogCaptureFixture
) -> None:
    """The start of each epoch is searched in the indexes before their end is restored."""
    directory = DataDirectory.open(tmp_path, node_id=1)
    log = directory.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    for turn in range(100):
        log.append(sized(BATCH_BYTES, timestamp=NOW + turn), leader_epoch=turn // 50, now_ms=NOW)
        if turn == 97:
            log.flush()
            directory.prepare_checkpoint()()
    directory.close(clean=False)
    bytes_read()
    again = DataDirectory.open(tmp_path, node_id=1).open_log(FLIGHTS, CONFIG, now_ms=NOW)
    assert bytes_read() <= 3 * BATCH_BYTES + SLACK
    assert again.epochs.entries == [(0, 0), (1, 50)]
    assert again.max_timestamp() == (99, NOW + 99, 1)
    assert "rebuilding it" not in caplog.text


def transactions(log: Log, turns: int) -> None:
    """Producers that write, and end what they write now so, now so; the last leaves its transaction open."""
    for turn in range(turns):
        entry = log.producers.entries.get(turn % 5)
        send(log, turn % 5, entry.last_sequence + 1 if entry else 0, transactional=True)
        send(log, 1000 + log.end_offset, 0)
        if turn % 5 != 4:
            end(log, turn % 5, commit=turn % 2 == 0)


@pytest.mark.parametrize("cut", [0, 7])
@pytest.mark.parametrize("between", [0, 1, 13, 30])
def test_a_snapshot_with_the_later_batches_gives_the_state_of_all_batches(
    tmp_path: Path, between: int, cut: int
) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    transactions(log, 10)
    log.flush()
    keep = log.keeping_producers()
    assert keep is not None
    transactions(log, between)
    keep()
    log.flush()
    transactions(log, 6)
    path = log.segments[-1].path
    path.write_bytes(path.read_bytes()[: log.size_bytes - cut])
    again = open_log(tmp_path / "t-0", CONFIG, recovery_point=log.recovery_point)
    assert (again.recovery is not None) == bool(cut)
    if not cut:
        assert known(again) == known(log)
    offset = max(snapshot_offsets(log.directory))
    assert 0 < offset <= log.recovery_point
    for path in (*log.directory.glob("*.snapshot"), *log.directory.glob("*.txnindex")):
        path.unlink()
    from_all = open_log(tmp_path / "t-0", CONFIG)
    assert known(again) == known(from_all)


def test_intermediate_snapshots_do_not_accumulate(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    for turn in range(20):
        transactions(log, 2)
        log.flush()
        keep = log.keeping_producers()
        assert keep is not None, turn
        assert log.keeping_producers() is None
        keep()
    assert len(snapshot_offsets(log.directory)) == 2


def test_records_missing_below_the_recovery_point_are_reported_and_their_offsets_not_reused(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    transactions(log, 10)
    log.flush()
    keep = log.keeping_producers()
    assert keep is not None
    keep()
    path = log.segments[-1].path
    path.write_bytes(path.read_bytes()[: log.size_bytes // 2])
    again = open_log(tmp_path / "t-0", CONFIG, recovery_point=log.end_offset)
    assert (again.end_offset, again.recovery, known(again)) == (log.end_offset, None, known(log))
    with pytest.raises(DamagedLogError, match=f"seek to offset {log.end_offset} to go on"):
        again.read(log.end_offset - 1, 1)
    assert append(again, b"a") == log.end_offset


def test_a_late_snapshot_is_not_written_into_the_folder_of_another_topic(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    transactions(log, 2)
    log.flush()
    keep = log.keeping_producers()
    assert keep is not None
    offset = log.end_offset
    log.delete()
    again = open_log(tmp_path / "t-0", CONFIG)
    keep()
    assert not snapshot_path(again.directory, offset).exists()


def test_a_small_log_without_producers_leaves_no_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    append(log, b"a")
    log.close()
    assert not snapshot_offsets(log.directory)
    again = open_log(tmp_path / "t-0", CONFIG, clean=True)
    assert known(again) == known(log)
    send(again, 7, 0)
    again.close()
    assert snapshot_offsets(again.directory) == [2]


def test_a_recreated_log_is_not_mistaken_for_the_deleted_one(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path, node_id=1)
    log = directory.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    append(log, *[b"x"] * 100)
    log.flush()
    log.advance_start(90)
    directory.checkpoint()
    directory.delete_log(FLIGHTS)
    directory.forget_checkpoints([FLIGHTS])
    log = directory.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    append(log, *[b"new"] * 50)
    data = everything(log)
    log.segments[-1].path.write_bytes(data + b"torn")
    directory.close(clean=False)
    again = DataDirectory.open(tmp_path, node_id=1)
    log = again.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    assert (log.start_offset, log.end_offset, everything(log)) == (0, 50, data)
    assert log.recovery is not None
    again.close()


def test_older_checkpoints_never_replace_newer_ones(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path, node_id=1)
    log = directory.open_log(FLIGHTS, CONFIG, now_ms=NOW)
    append(log, b"a", b"b")
    late = directory.prepare_checkpoint()
    log.advance_start(1)
    directory.checkpoint()
    late()
    assert (tmp_path / "log-start-offset-checkpoint").read_text() == "0\n1\nflights 0 1\n"
    directory.close()


@pytest.mark.parametrize(("offset", "left"), [(4, []), (5, []), (6, [5]), (9, [5]), (10, [5, 9])])
@pytest.mark.parametrize("saved", [False, True])
def test_a_transaction_index_is_truncated_at_an_offset(
    tmp_path: Path, offset: int, left: list[int], saved: bool
) -> None:
    index = TransactionIndex(tmp_path / "0.txnindex", 0)
    for marker in (5, 9):
        index.append(AbortedTxn(7, 0, marker, marker + 1))
    index.save()
    if saved:
        index = TransactionIndex(tmp_path / "0.txnindex", 0)
    index.truncate(offset)
    assert index.end == (left[-1] if left else -1)
    index.append(AbortedTxn(7, 0, 20, 21))
    index.save()
    assert [row.last_offset for row in TransactionIndex(tmp_path / "0.txnindex", 0)] == [*left, 20]
