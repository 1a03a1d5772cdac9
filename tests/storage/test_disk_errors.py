"""The disk fills up, breaks, or takes less than it was given."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.errors import ErrorCode, KafkaError
from ottla.storage.files.storage_error import storage_error
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, append, batch, everything, open_log

FAULTS = [errno.ENOSPC, errno.EIO, errno.EROFS]


class Disk:
    """Replace os.pwrite: accept `room` more bytes, at most `at_once` per call, then fail."""

    def __init__(self, room: int, at_once: int = 1 << 30, fault: int = errno.ENOSPC) -> None:
        self.room, self.at_once, self.fault = room, at_once, fault
        self.pwrite: Callable[..., int] = os.pwrite

    def __call__(self, fd: int, data: Any, position: int) -> int:
        if self.room == 0:
            raise OSError(self.fault, os.strerror(self.fault))
        taken = memoryview(data)[: min(self.room, self.at_once)]
        self.room -= len(taken)
        return self.pwrite(fd, taken, position)


@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    log = open_log(tmp_path / "t-0")
    monkeypatch.setattr(os, "pwrite", Disk(1 << 30, at_once))
    append(log, b"a" * 500, b"b")
    assert len(everything(log)) == log.size_bytes == len(batch(b"a" * 500, b"b"))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("room", [0, 1, 60, 100])
def test_a_failed_write_leaves_the_log_unchanged_and_writes_succeed_when_space_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int, room: int
) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a", b"b")
    before = everything(log)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", Disk(room, fault=fault))
        with pytest.raises(KafkaError, match=f"cannot append .* {os.strerror(fault)}") as caught:
            append(log, b"c" * 500)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert caught.value.retriable
    assert (log.end_offset, everything(log)) == (2, before)
    assert log.segments[-1].path.stat().st_size == len(before)
    assert append(log, b"d") == 2
    log.close()
    assert open_log(tmp_path / "t-0", clean=True).end_offset == 3


def test_the_file_that_could_not_be_written_is_named_once() -> None:
    denied = OSError(errno.EACCES, "Permission denied", "/data/t-0/leader-epoch-checkpoint")
    message = str(storage_error("cannot open the log in /data/t-0", denied))
    assert message.endswith(": cannot open the log in /data/t-0: Permission denied (/data/t-0/leader-epoch-checkpoint)")
    assert str(storage_error(f"cannot read {denied.filename}", denied)).count(str(denied.filename)) == 1
    assert str(storage_error("cannot write", OSError(errno.EIO, "broken"))).endswith(": cannot write: broken")


def test_a_failed_write_that_cannot_be_truncated_is_overwritten_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a", b"b")

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", Disk(300))
        patch.setattr(os, "ftruncate", broken)
        with pytest.raises(KafkaError):
            append(log, b"c" * 500)
    assert log.segments[-1].path.stat().st_size > log.size_bytes
    assert append(log, b"d") == 2
    log.close()
    again = open_log(tmp_path / "t-0", clean=True)
    assert (again.end_offset, again.recovery) == (3, None)


def test_a_segment_that_cannot_be_created_leaves_the_log_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=300))
    while log.size_bytes + len(batch(b"a")) <= 300:
        end = append(log, b"a") + 1
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(KafkaError, match="cannot create a new segment"):
            append(log, b"a")
    assert (log.end_offset, len(log.segments)) == (end, 1)
    assert append(log, b"a") == end
    assert len(log.segments) == 2


def test_a_failed_flush_raises_and_does_not_advance_the_recovery_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a")

    def broken(_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(KafkaError, match="cannot flush"):
            log.flush()
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 1


@pytest.fixture
def unforced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """A log of two batches, of which the second could not be forced to the disk."""
    log = open_log(tmp_path / "t-0")
    append(log, b"a")
    log.flush()
    append(log, b"b")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        with pytest.raises(KafkaError, match="cannot flush"):
            log.flush()
    return log


@pytest.mark.behaviour("B2")
def test_unflushed_bytes_are_rewritten_before_a_flush_counts(unforced: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    append(unforced, b"c")
    path = unforced.segments[-1].path
    whole, size = path.read_bytes(), len(batch(b"a"))
    done: list[str] = []
    pwrite, fsync = os.pwrite, os.fsync

    def writing(fd: int, data: Any, at: int) -> int:
        done.append(f"write at {at}")
        return pwrite(fd, data, at)

    def forcing(fd: int) -> None:
        done.append("force")
        fsync(fd)

    monkeypatch.setattr(os, "pwrite", writing)
    monkeypatch.setattr(os, "fsync", forcing)
    unforced.flush()
    assert done[:3] == [f"write at {size}", f"write at {2 * size}", "force"]
    assert (path.read_bytes(), unforced.recovery_point) == (whole, 3)
    done.clear()
    append(unforced, b"d")
    unforced.flush()
    assert done[:2] == [f"write at {3 * size}", "force"], "the append, and nothing again"


@pytest.mark.behaviour("B2")
def test_unflushed_bytes_are_rewritten_before_a_sync_of_the_file_system_too(
    unforced: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    pwrite = os.pwrite

    def writing(fd: int, data: Any, at: int) -> int:
        done.append(at)
        return pwrite(fd, data, at)

    monkeypatch.setattr(os, "pwrite", writing)
    unforced.flush(sync=False)
    assert done[0] == len(batch(b"a"))


@pytest.mark.behaviour("B2")
def test_pages_dropped_by_the_system_fail_every_later_flush(unforced: Log) -> None:
    path, size = unforced.segments[-1].path, len(batch(b"a"))
    path.write_bytes(path.read_bytes()[:size] + bytes(size))
    for _ in range(2):
        with pytest.raises(KafkaError, match=r"cannot flush the log in .*: what could not be written is lost"):
            unforced.flush()
    assert unforced.recovery_point == 1


def test_a_log_truncated_during_the_rewrite_is_not_extended(unforced: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    path, size = unforced.segments[-1].path, len(batch(b"a"))
    pread = os.pread

    def cutting(fd: int, count: int, at: int) -> bytes:
        data = pread(fd, count, at)
        monkeypatch.setattr(os, "pread", pread)
        unforced.truncate_to(1, now_ms=NOW)
        return data

    monkeypatch.setattr(os, "pread", cutting)
    with pytest.raises(KafkaError, match="the log was cut while it was written again"):
        unforced.flush()
    assert path.stat().st_size == size
    unforced.flush()
    assert unforced.recovery_point == 1


def test_flushing_forces_the_log_before_its_indexes_and_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a")
    synced: list[str] = []
    fsync = os.fsync

    def noting(fd: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noting)
    log.flush()
    name = "0" * 20
    expected = [f"{name}.log", f"{name}.index", f"{name}.timeindex"]
    expected += ["leader-epoch-checkpoint.tmp", "t-0", "t-0", tmp_path.name]
    assert synced == expected
    log.flush()
    assert synced == expected


FULL = """
import resource, signal, sys
from pathlib import Path
from ottla.errors import KafkaError
from tests.storage.batches import append, everything, open_log
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
log = open_log(Path(sys.argv[1]) / "t-0")
for number in range(1000):
    before = log.size_bytes
    try:
        append(log, bytes(700))
    except KafkaError as error:
        print(error, log.size_bytes == before, log.segments[-1].path.stat().st_size == before)
        break
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(append(log, b"a") == number, len(everything(log)) == log.size_bytes)
"""


def test_a_real_file_that_may_not_grow_is_a_storage_error_and_no_more(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, tmp_path], capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first.startswith("KAFKA_STORAGE_ERROR: cannot append")
    assert first.endswith("File too large True True")
    assert second == "True True"


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "t-0").write_text("a file")
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR: cannot open the log in"):
        open_log(tmp_path / "t-0", now_ms=NOW)


def test_reads_work_when_a_rebuilt_index_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = LogConfig(segment_bytes=500)
    log = open_log(tmp_path / "t-0", config)
    for _ in range(20):
        append(log, b"a")
    data = everything(log)
    log.close()
    for path in (tmp_path / "t-0").glob("*index"):
        path.write_bytes(b"garbage")
    log = open_log(tmp_path / "t-0", config, clean=True)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", Disk(0))
        assert everything(log) == data
    log.close()
    assert b"garbage" not in {path.read_bytes() for path in (tmp_path / "t-0").glob("*index")}


def test_a_log_deleted_during_a_flush_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"a")
    fsync = os.fsync

    def deleting(fd: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        log.delete()
        fsync(fd)

    monkeypatch.setattr(os, "fsync", deleting)
    log.flush()
    assert not (tmp_path / "t-0").exists()
