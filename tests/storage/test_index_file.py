"""The file of an index, which catches up with columns in memory."""

from __future__ import annotations

import errno
import os
from array import array
from pathlib import Path

import pytest

from ottla.storage.files.open_file import write_all
from ottla.storage.indexes.index_file import IndexFile


def columns(*entries: tuple[int, int]) -> list[array[int]]:
    return [array("i", column) for column in zip(*entries, strict=True)]


def words(path: Path) -> list[int]:
    return [int.from_bytes(path.read_bytes()[i : i + 4], "big", signed=True) for i in range(0, path.stat().st_size, 4)]


def test_a_save_writes_only_the_entries_added_since_the_last_save(tmp_path: Path) -> None:
    index = IndexFile(tmp_path / "0.index", 2)
    index.save(columns((1, 100), (2, 200)), sync=False)
    assert words(index.path) == [1, 100, 2, 200]

    index.path.write_bytes(bytes(8) + index.path.read_bytes()[8:])
    index.save(columns((1, 100), (2, 200), (3, -300)), sync=True)
    assert words(index.path) == [0, 0, 2, 200, 3, -300]


def test_a_half_appended_entry_is_saved_with_the_next_save(tmp_path: Path) -> None:
    index = IndexFile(tmp_path / "0.index", 2)
    offsets, positions = columns((1, 100))
    offsets.append(2)
    index.save([offsets, positions], sync=False)
    assert (words(index.path), index.saved) == ([1, 100], 1)

    positions.append(200)
    index.save([offsets, positions], sync=False)
    assert words(index.path) == [1, 100, 2, 200]


def test_an_overtaken_save_changes_nothing(tmp_path: Path) -> None:
    index = IndexFile(tmp_path / "0.index", 2)
    taken = columns((1, 100))
    index.save(columns((1, 100), (2, 200)), sync=False)
    index.save(taken, sync=True)
    assert (words(index.path), index.saved) == ([1, 100, 2, 200], 2)


def test_truncated_entries_are_removed_from_the_file_by_the_next_save(tmp_path: Path) -> None:
    index = IndexFile(tmp_path / "0.index", 2)
    index.save(columns((1, 100), (2, 200), (3, 300)), sync=False)
    index.truncate(1)
    assert words(index.path) == [1, 100, 2, 200, 3, 300]

    index.save(columns((1, 100)), sync=False)
    assert words(index.path) == [1, 100]

    index.path.write_bytes(index.path.read_bytes() + bytes(8))
    index.save(columns((1, 100)), sync=False)
    assert words(index.path) == [1, 100, 0, 0], "once is enough"


def test_new_entries_replace_truncated_ones(tmp_path: Path) -> None:
    index = IndexFile(tmp_path / "0.index", 2)
    index.save(columns((1, 100), (2, 200), (3, 300)), sync=False)
    index.truncate(1)
    index.truncate(5)
    index.save(columns((1, 100), (7, 700)), sync=False)
    assert words(index.path) == [1, 100, 7, 700]


def test_loaded_entries_are_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    IndexFile(path, 2).save(columns((1, 100), (2, 200)), sync=False)
    index = IndexFile(path, 2)
    assert index.load() == array("i", [1, 100, 2, 200])
    assert index.saved == 2
    path.write_bytes(path.read_bytes() + bytes(8))
    index.save(columns((1, 100), (2, 200)), sync=False)
    assert words(path) == [1, 100, 2, 200, 0, 0], "there was nothing to do"


def test_the_file_of_another_segment_is_not_touched(tmp_path: Path) -> None:
    index = IndexFile(tmp_path / "0.index", 2)
    index.save(columns((1, 100)), sync=False)
    index.retire()
    index.truncate(0)
    index.save(columns((5, 500), (6, 600)), sync=False)
    assert words(index.path) == [1, 100]


def test_every_byte_is_written_despite_short_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = bytearray(12)

    def few(fd: int, data: memoryview, position: int) -> int:
        part = data[:3]
        written[position : position + len(part)] = part
        return len(part)

    monkeypatch.setattr("os.pwrite", few)
    write_all(9, memoryview(b"0123456789"), 2)
    assert bytes(written) == b"\0\0" + b"0123456789"


def test_a_partial_write_on_a_full_disk_is_truncated_by_the_next_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = IndexFile(tmp_path / "0.index", 2)
    real = os.pwrite

    def until_full(fd: int, data: memoryview, position: int) -> int:
        if position:
            raise OSError(errno.ENOSPC, "full")
        return real(fd, data[:16], position)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", until_full)
        with pytest.raises(OSError, match="full"):
            index.save(columns((1, 100), (2, 200), (3, 300)), sync=False)
    assert (words(index.path), index.saved) == ([1, 100, 2, 200], 0)
    index.save(columns((1, 100)), sync=False)
    assert words(index.path) == [1, 100]


def test_a_reset_index_has_no_entry_of_its_old_file(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(bytes(40))
    index = IndexFile(path, 2)
    index.clear()
    index.save(columns((1, 100)), sync=False)
    assert words(path) == [1, 100]
    index.clear()
    index.save(columns((2, 200), (3, 300)), sync=False)
    assert words(path) == [2, 200, 3, 300]


def test_a_new_index_file_exists_at_once_and_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(bytes(40))
    path.unlink()
    IndexFile(path, 2).create()
    assert path.read_bytes() == b""
    assert not path.stat().st_mode & 0o111, "nobody runs it"
    assert IndexFile(path, 2).load() == array("i")


def test_a_file_that_is_not_there_or_ends_within_an_entry_is_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    assert IndexFile(path, 2).load() is None
    for size in (4, 12, 15):
        path.write_bytes(bytes(size))
        index = IndexFile(path, 2)
        assert (index.load(), index.saved) == (None, 0)


def test_a_removed_file_is_written_again_by_the_next_save(tmp_path: Path) -> None:
    index = IndexFile(tmp_path / "0.index", 2)
    index.save(columns((1, 100)), sync=False)
    index.path.unlink()
    index.save(columns((1, 100)), sync=False)
    assert index.path.exists()


def test_flushed_entries_are_not_flushed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[int] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        forced.append(fd)
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    file, columns = IndexFile(tmp_path / "i", words=1), [array("i", [1, 2])]
    file.create()
    file.save([array("i")], sync=True)
    assert not forced, "nothing is in it"
    file.save(columns, sync=False)
    file.save(columns, sync=True)
    assert len(forced) == 1, "it was written, and not forced"
    file.save(columns, sync=True)
    assert len(forced) == 1
    columns[0].append(3)
    file.save(columns, sync=True)
    assert len(forced) == 2
    file.truncate(1)
    file.save([columns[0][:1]], sync=True)
    assert (len(forced), len((tmp_path / "i").read_bytes())) == (3, 4)
    again = IndexFile(tmp_path / "i", words=1)
    loaded = again.load()
    assert loaded is not None
    again.save([loaded], sync=True)
    assert len(forced) == 4, "who wrote it last may not have forced it"


def test_rewritten_entries_are_flushed_even_if_the_size_is_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[int] = []
    file = IndexFile(tmp_path / "i", words=1)
    file.save([array("i", [1, 2])], sync=True)
    file.save([array("i", [1, 2, 3])], sync=False)
    file.truncate(1)
    file.save([array("i", [1, 7])], sync=False)
    monkeypatch.setattr(os, "fsync", forced.append)
    file.save([array("i", [1, 7])], sync=True)
    assert (len(forced), words(file.path)) == (1, [1, 7])


def test_a_save_makes_the_file_and_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    file = IndexFile(tmp_path / "i", words=1)
    for count in range(1, 4):
        file.save([array("i", range(count))], sync=False)
    assert len(os.listdir("/proc/self/fd")) <= before
    assert not file.path.stat().st_mode & 0o111, "nobody runs it"
