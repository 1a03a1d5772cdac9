"""The high watermark apart from the log's end, as where a partition has copies elsewhere."""

from __future__ import annotations

import errno
from pathlib import Path
from unittest import mock

import pytest

from ottla.errors import KafkaError
from ottla.model import TopicPartition
from ottla.storage.directory import high_watermarks
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, append, open_log
from tests.storage.producing import end, send

FLIGHTS = TopicPartition("flights", 0)
NAME = "replication-offset-checkpoint"


def replicated(path: Path, committed: int = 0, *, clean: bool = False) -> Log:
    return open_log(path / "flights-0", committed=committed, clean=clean)


def test_a_log_without_followers_is_committed_on_append(tmp_path: Path) -> None:
    log = open_log(tmp_path / "flights-0")
    append(log, b"a", b"b")
    assert (log.high_watermark, log.last_stable_offset, log.end_offset) == (2, 2, 2)


def test_with_followers_the_high_watermark_moves_only_when_set_and_never_decreases(tmp_path: Path) -> None:
    log = replicated(tmp_path)
    append(log, b"a", b"b", b"c")
    assert (log.high_watermark, log.last_stable_offset, log.end_offset) == (0, 0, 3)
    assert log.advance_high_watermark(2)
    assert not log.advance_high_watermark(1)
    assert log.high_watermark == 2
    assert log.advance_high_watermark(9)
    assert (log.high_watermark, log.end_offset) == (3, 3)


def test_a_committed_read_ends_at_the_high_watermark(tmp_path: Path) -> None:
    log = replicated(tmp_path)
    append(log, b"a")
    append(log, b"b")
    log.advance_high_watermark(1)
    whole, committed = log.read(0, 1000), log.read(0, 1000, up_to=log.high_watermark)
    assert whole is not None
    assert committed is not None
    assert len(whole) == 2 * len(committed)
    assert log.read(1, 1000, up_to=log.high_watermark) is None
    assert log.read(2, 1000, up_to=log.high_watermark) is None


def test_a_partition_without_followers_is_fully_committed(tmp_path: Path) -> None:
    log = replicated(tmp_path)
    append(log, b"a")
    log.set_replicated(False)
    assert log.high_watermark == 1
    append(log, b"b")
    assert log.high_watermark == 2


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_is_stable_once_its_marker_is_committed(tmp_path: Path, commit: bool) -> None:
    log = replicated(tmp_path)
    send(log, 7, 0, 2, transactional=True)
    end(log, 7, commit=commit)
    append(log, b"c")
    for committed, stable in [(1, 0), (2, 0), (3, 3), (4, 4)]:
        log.advance_high_watermark(committed)
        assert (log.high_watermark, log.last_stable_offset) == (committed, stable)


@pytest.mark.parametrize("clean", [True, False])
def test_the_stable_offset_is_the_same_after_a_restart(tmp_path: Path, clean: bool) -> None:
    log = replicated(tmp_path)
    append(log, b"before")
    send(log, 7, 0, 2, transactional=True)
    end(log, 7, commit=True)
    if clean:
        log.close()
    log = replicated(tmp_path, committed=2, clean=clean)
    assert (log.high_watermark, log.last_stable_offset, log.end_offset) == (2, 1, 4)
    log.advance_high_watermark(4)
    assert log.last_stable_offset == 4


def test_retention_keeps_uncommitted_records(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=200, retention_ms=10)
    log = open_log(tmp_path / "flights-0", config, committed=0)
    for _ in range(6):
        append(log, bytes(50))
    log.advance_high_watermark(3)
    log.retain(NOW + 1000)
    assert log.start_offset <= 3
    log.advance_high_watermark(6)
    log.retain(NOW + 1000)
    assert log.start_offset == 6


def opened(path: Path) -> DataDirectory:
    return DataDirectory.open(path, node_id=1)


def test_the_high_watermarks_are_written_at_stop_and_read_at_start(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW, replicated=True)
    append(log, b"a", b"b", b"c")
    log.advance_high_watermark(2)
    directory.close()
    assert (tmp_path / NAME).read_text() == "0\n1\nflights 0 2\n"
    directory = opened(tmp_path)
    log = directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW, replicated=True)
    assert (log.high_watermark, log.end_offset) == (2, 3)
    directory.close()


def test_a_stored_high_watermark_is_capped_at_the_log_end(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    append(directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW), b"a")
    directory.close()
    (tmp_path / NAME).write_text("0\n1\nflights 0 77\n")
    directory = opened(tmp_path)
    assert directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW, replicated=True).high_watermark == 1
    directory.close()


@pytest.mark.parametrize("text", ["garbage", "0\n2\nflights 0 2\n", "1\n1\nflights 0 2\n", "0\n1\nflights 0 x\n"])
def test_a_damaged_file_is_reported_and_rebuilt(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    directory = opened(tmp_path)
    append(directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW), b"a")
    directory.close()
    (tmp_path / NAME).write_text(text)
    directory = opened(tmp_path)
    assert f"{NAME} is damaged and passed over" in caplog.text
    log = directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW, replicated=True)
    assert log.high_watermark == 0
    log.advance_high_watermark(1)
    directory.close()
    assert (tmp_path / NAME).read_text() == "0\n1\nflights 0 1\n"


def test_an_unchanged_checkpoint_is_not_written(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    append(directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW), b"a")
    writing = directory.prepare_high_watermarks()
    assert writing is not None
    writing()
    assert directory.prepare_high_watermarks() is None
    directory.close()


def test_a_late_writer_does_not_replace_a_newer_state(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    log = directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW)
    append(log, b"a")
    late = directory.prepare_high_watermarks()
    append(log, b"b")
    newer = directory.prepare_high_watermarks()
    assert late is not None
    assert newer is not None
    newer()
    late()
    assert (tmp_path / NAME).read_text() == "0\n1\nflights 0 2\n"
    directory.close()


def deleted(path: Path) -> DataDirectory:
    """A directory with a checkpoint that still lists a removed log."""
    directory = opened(path)
    append(directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW), b"a", b"b")
    writing = directory.prepare_high_watermarks()
    assert writing is not None
    writing()
    directory.delete_log(FLIGHTS)
    return directory


def test_a_recreated_topic_does_not_inherit_the_old_high_watermark(tmp_path: Path) -> None:
    directory = deleted(tmp_path)
    directory.forget_checkpoints([FLIGHTS])
    assert (tmp_path / NAME).read_text() == "0\n0\n"
    assert directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW, replicated=True).high_watermark == 0
    directory.close()


def test_a_failed_removal_of_the_old_watermark_is_retried_with_the_recreated_topic(
    tmp_path: Path,
) -> None:
    directory = deleted(tmp_path)
    broken = mock.patch.object(high_watermarks, "write_offsets", side_effect=OSError(errno.EIO, "broken"))
    with broken, pytest.raises(KafkaError, match="cannot write"):
        directory.forget_checkpoints([FLIGHTS])
    directory.forget_checkpoints([FLIGHTS])
    assert (tmp_path / NAME).read_text() == "0\n0\n"
    directory.close()
