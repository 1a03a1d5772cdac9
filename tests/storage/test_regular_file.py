"""Only a regular file is opened, and no other file type blocks the process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ottla.storage.files.durable import replace_file
from ottla.storage.files.open_file import OpenFile
from ottla.storage.files.regular_file import NoFileError, open_regular, read_whole
from ottla.storage.producers.producer_snapshot import snapshot_path, write_snapshot
from tests.storage.no_files import in_the_place_of

FLAGS = [os.O_RDONLY, os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC]
KINDS = ["a folder", "a pipe", "a socket", "a device", "a link that leads nowhere"]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_that_is_not_a_file_is_reported_at_once(tmp_path: Path, kind: str, flags: int) -> None:
    path = tmp_path / "file"
    in_the_place_of(path, kind)
    with pytest.raises(NoFileError) as raised:
        open_regular(path, flags)
    assert (raised.value.filename, raised.value.strerror) == (str(path), f"it is {kind}, where a file belongs")


def test_a_file_and_a_link_to_one_are_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    assert [read_whole(tmp_path / name) for name in ("file", "link")] == [b"x", b"x"]


def test_a_missing_file_is_reported_as_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "gone", os.O_RDONLY)


def test_writes_do_not_wait_for_a_reader_either(tmp_path: Path) -> None:
    in_the_place_of(tmp_path / "file.tmp", "a pipe")
    with pytest.raises(NoFileError):
        replace_file(tmp_path / "file", "text")
    in_the_place_of(snapshot_path(tmp_path, 5), "a pipe")
    with pytest.raises(NoFileError):
        write_snapshot(tmp_path, 5, [])
    assert snapshot_path(tmp_path, 5).is_fifo()


def test_a_folder_is_opened_only_on_request(tmp_path: Path) -> None:
    assert not OpenFile(tmp_path, folder=True).writable
    with pytest.raises(NoFileError):
        OpenFile(tmp_path, read=True)
    in_the_place_of(tmp_path / "pipe", "a pipe")
    with pytest.raises(NotADirectoryError):
        OpenFile(tmp_path / "pipe", folder=True)
