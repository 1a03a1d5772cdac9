"""The number of files that logs keep open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.errors import KafkaError
from ottla.storage.files import open_files
from ottla.storage.files.open_files import OpenFiles, connections_of, reserve_of
from ottla.storage.log_config import LogConfig
from ottla.storage.segments import segment
from tests.storage.batches import NOW, append, everything, open_log


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> OpenFiles:
    """A limit of four files."""
    files = OpenFiles(4)
    monkeypatch.setattr(segment, "OPEN_FILES", files)
    return files


def test_more_logs_than_file_descriptors_can_be_written_and_read(tmp_path: Path, four: OpenFiles) -> None:
    logs = [open_log(tmp_path / f"t-{n}") for n in range(10)]
    before = len(os.listdir("/proc/self/fd"))
    for turn in range(3):
        for log in logs:
            assert append(log, b"%d" % turn) == turn
            assert len(four) <= 4
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    assert {everything(log) for log in logs} == {everything(logs[0])}
    for log in logs:
        log.close()
    assert len(four) == 0


def test_frequently_used_files_stay_open(tmp_path: Path, four: OpenFiles) -> None:
    logs = [open_log(tmp_path / f"t-{n}") for n in range(20)]
    append(logs[0], b"a")
    held = logs[0].segments[-1].file
    for log in logs[1:]:
        append(log, b"a")
        append(logs[0], b"a")
    assert logs[0].segments[-1].file is held


def test_a_slice_in_use_is_readable_after_its_file_is_closed(tmp_path: Path, four: OpenFiles) -> None:
    logs = [open_log(tmp_path / f"t-{n}") for n in range(10)]
    append(logs[0], b"a" * 100)
    whole, piece = everything(logs[0]), logs[0].read(0, 1000)
    assert piece is not None
    for log in logs[1:] * 2:
        append(log, b"b")
    assert logs[0].segments[-1]._file is None
    assert os.pread(piece.file.fileno(), piece.size, piece.position) == whole


FEW = """
import resource, sys
from pathlib import Path
from ottla.storage.files.open_files import OPEN_FILES
from tests.storage.batches import append, open_log
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
logs = [open_log(Path(sys.argv[1]) / f"t-{n}") for n in range(100)]
taken = [open("/dev/null") for _ in range(15)]
for log in logs: append(log, b"a")
OPEN_FILES._limit = 1000
for log in logs: append(log, b"b")
print(sum(log.end_offset for log in logs))
"""


def test_a_low_descriptor_limit_lowers_the_number_of_open_files(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FEW, tmp_path], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("200\n", "")


def test_a_log_on_a_read_only_disk_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())
    append(log, b"a")
    whole = everything(log)
    log.close()
    opening = os.open

    def read_only(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(30, "Read-only file system")
        return opening(path, flags, mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only)
        again = open_log(tmp_path / "t-0", clean=True, now_ms=NOW)
        assert everything(again) == whole
        with pytest.raises(KafkaError, match=r"cannot append .* Read-only file system"):
            append(again, b"b")
    assert append(again, b"b") == 1


def test_half_of_the_descriptor_limit_is_for_logs() -> None:
    import resource

    assert OpenFiles().limit == resource.getrlimit(resource.RLIMIT_NOFILE)[0] // open_files.SHARE


class File:
    """A holder that counts how often it had to do without."""

    used = 0
    dropped = 0

    def drop_file(self) -> None:
        self.dropped += 1


def test_segments_release_descriptors_for_connections_down_to_a_minimum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, 256))
    files = OpenFiles()
    assert (files.share, connections_of(256)) == (128, 160)
    holders = [File() for _ in range(100)]
    opened = [files.open(holder, tmp_path / str(number), create=True) for number, holder in enumerate(holders)]
    for _ in range(160):
        files.count_connections(1)
        assert len(files) <= files.share
        assert len(files) + files._connections + reserve_of(256) <= 256
    assert files.share == 32
    files.count_connections(-160)
    assert files.share == 128
    assert sum(holder.dropped for holder in holders) == len(opened) - len(files)
