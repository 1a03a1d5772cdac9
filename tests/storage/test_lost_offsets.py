"""Ranges of lost offsets: stored with a log, dropped where the log continues before their end, and merged with found damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.batches.verified_walk import Unsound
from ottla.storage.recovery.lost_offsets import (
    FILE_NAME,
    LostOffsets,
    add_lost,
    drop_lost,
    insert_lost,
    lost_between,
    read_lost,
)

NOTHING = "nothing of it is there"
KNOWN = [LostOffsets(2, 4), LostOffsets(7, 9), LostOffsets(12, 20)]


def kept(folder: Path) -> tuple[list[LostOffsets], int]:
    """Return the content of the file, and the file's identity."""
    return read_lost(folder), (folder / FILE_NAME).stat().st_ino


def test_ranges_are_kept_in_order_and_once(tmp_path: Path) -> None:
    assert read_lost(tmp_path) == []
    add_lost(tmp_path, [KNOWN[2], KNOWN[0]])
    add_lost(tmp_path, [KNOWN[1], KNOWN[0]])
    assert read_lost(tmp_path) == KNOWN


@pytest.mark.parametrize(("offset", "left"), [(3, 0), (4, 1), (8, 1), (9, 2), (12, 2), (19, 2)])
def test_ranges_are_dropped_where_the_log_continues_before_their_end(tmp_path: Path, offset: int, left: int) -> None:
    add_lost(tmp_path, KNOWN)
    drop_lost(tmp_path, offset)
    assert read_lost(tmp_path) == KNOWN[:left]


@pytest.mark.parametrize("offset", [20, 21])
def test_nothing_is_written_if_no_range_is_dropped(tmp_path: Path, offset: int) -> None:
    add_lost(tmp_path, KNOWN)
    before = kept(tmp_path)
    drop_lost(tmp_path, offset)
    assert kept(tmp_path) == before
    drop_lost(tmp_path / "nowhere", 0)


def test_a_damaged_file_is_reported_and_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE_NAME).write_text("0\n2\n1 2\n")
    assert read_lost(tmp_path) == []
    assert f"{tmp_path / FILE_NAME} is damaged and passed over" in caplog.text


@pytest.mark.parametrize(
    ("begin", "end", "found"), [(2, 4, [0]), (3, 4, []), (2, 3, []), (0, 9, [0, 1]), (4, 12, [1]), (0, 99, [0, 1, 2])]
)
def test_a_gap_covers_the_ranges_inside_it(begin: int, end: int, found: list[int]) -> None:
    expected = [Unsound(0, 0, *KNOWN[number], NOTHING) for number in found]
    assert list(lost_between(KNOWN, begin, end)) == expected


def test_ranges_are_merged_before_between_and_after_found_damage() -> None:
    damaged = [Unsound(0, 10, 4, 7, "torn"), Unsound(10, 10, 9, 10, "torn")]
    lost = [Unsound(0, 0, *each, NOTHING) for each in KNOWN]
    assert list(insert_lost(damaged, KNOWN, 0, 30)) == [lost[0], damaged[0], lost[1], damaged[1], lost[2]]
    assert list(insert_lost([], KNOWN[:1], 0, 3)) == []
