"""A log that a crash has torn before its end: from where on it is not to be believed, so that it can be copied from a leader."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.log import Log
from tests.storage.batches import NOW, append, open_log

BATCHES = 6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = open_log(tmp_path / "t-0")
    for _ in range(BATCHES):
        append(log, b"a")
    log.close()
    return log.directory


def damage(folder: Path, *offsets: int) -> None:
    """Flip a bit of the records at these offsets, which are batches of the same size."""
    (path,) = folder.glob("*.log")
    data = bytearray(path.read_bytes())
    size = len(data) // BATCHES
    for offset in offsets:
        data[(offset + 1) * size - 2] ^= 1
    path.write_bytes(data)


def torn(folder: Path, point: int, *, clean: bool = False) -> Log:
    return open_log(folder, clean=clean, recovery_point=point)


@pytest.mark.parametrize(("point", "at"), [(0, 2), (2, 2), (3, 4), (4, 4), (5, None)])
def test_it_is_torn_at_the_first_damage_above_its_recovery_point(folder: Path, point: int, at: int | None) -> None:
    damage(folder, 2, 4)
    log = torn(folder, point)
    assert (log.torn_at, log.end_offset) == (at, BATCHES)


def test_after_a_clean_stop_a_log_is_damaged_and_not_torn(folder: Path) -> None:
    damage(folder, 2)
    log = torn(folder, BATCHES, clean=True)
    assert (log.torn_at, log.end_offset) == (None, BATCHES)


def test_a_truncated_log_is_no_longer_torn(folder: Path) -> None:
    damage(folder, 2, 4)
    log = torn(folder, 0)
    assert log.truncate_torn(now_ms=NOW) == 2
    assert (log.torn_at, log.end_offset, log.segments[0].is_damaged) == (None, 2, False)
