"""Small files are read whole in few calls, and fail as they do by `Path.read_bytes`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.files.regular_file import read_whole


@pytest.mark.parametrize("data", [b"", b"x", b"version: 0\n" * 9_000])
def test_all_of_a_file_is_read(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    assert read_whole(file) == data


def test_a_file_without_a_known_size_is_read_to_its_end() -> None:
    version = Path("/proc/version")
    if not version.exists():
        pytest.skip("this system has no files of that kind")
    assert read_whole(version) == version.read_bytes()


def test_an_error_names_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as raised:
        read_whole(tmp_path)
    assert raised.value.filename == str(tmp_path)


def test_an_error_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        read_whole(tmp_path / "gone")
    assert Path(raised.value.filename) == tmp_path / "gone"
