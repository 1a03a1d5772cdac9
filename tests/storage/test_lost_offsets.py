"""Stretches of which nothing is there: kept beside a log, dropped where it goes on before them, and put among what is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.batches.verified_walk import Unsound
from ottla.storage.recovery.lost_offsets import FILE_NAME, Lost, add_lost, between, drop_lost, insert_lost, read_lost

NOTHING = "nothing of it is there"
KNOWN = [Lost(2, 4), Lost(7, 9), Lost(12, 20)]


def kept(folder: Path) -> tuple[list[Lost], int]:
    """What the file has, and which file it is."""
    return read_lost(folder), (folder / FILE_NAME).stat().st_ino


def test_they_are_kept_in_order_and_once(tmp_path: Path) -> None:
    assert read_lost(tmp_path) == []
    add_lost(tmp_path, [KNOWN[2], KNOWN[0]])
    add_lost(tmp_path, [KNOWN[1], KNOWN[0]])
    assert read_lost(tmp_path) == KNOWN


@pytest.mark.parametrize(("offset", "left"), [(3, 0), (4, 1), (8, 1), (9, 2), (12, 2), (19, 2)])
def test_where_a_log_goes_on_before_their_end_they_are_no_matter(tmp_path: Path, offset: int, left: int) -> None:
    add_lost(tmp_path, KNOWN)
    drop_lost(tmp_path, offset)
    assert read_lost(tmp_path) == KNOWN[:left]


@pytest.mark.parametrize("offset", [20, 21])
def test_where_nothing_is_dropped_nothing_is_written(tmp_path: Path, offset: int) -> None:
    add_lost(tmp_path, KNOWN)
    before = kept(tmp_path)
    drop_lost(tmp_path, offset)
    assert kept(tmp_path) == before
    drop_lost(tmp_path / "nowhere", 0)


def test_a_damaged_file_is_told_and_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE_NAME).write_text("0\n2\n1 2\n")
    assert read_lost(tmp_path) == []
    assert f"{tmp_path / FILE_NAME} is damaged and passed over" in caplog.text


@pytest.mark.parametrize(
    ("begin", "end", "found"), [(2, 4, [0]), (3, 4, []), (2, 3, []), (0, 9, [0, 1]), (4, 12, [1]), (0, 99, [0, 1, 2])]
)
def test_a_gap_has_those_that_lie_in_it_whole(begin: int, end: int, found: list[int]) -> None:
    expected = [Unsound(0, 0, *KNOWN[number], NOTHING) for number in found]
    assert list(between(KNOWN, begin, end)) == expected


def test_they_are_put_before_among_and_behind_what_is_found() -> None:
    damaged = [Unsound(0, 10, 4, 7, "torn"), Unsound(10, 10, 9, 10, "torn")]
    lost = [Unsound(0, 0, *each, NOTHING) for each in KNOWN]
    assert list(insert_lost(damaged, KNOWN, 0, 30)) == [lost[0], damaged[0], lost[1], damaged[1], lost[2]]
    assert list(insert_lost([], KNOWN[:1], 0, 3)) == []
