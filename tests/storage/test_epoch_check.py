"""The check of leader epochs against the batches: every difference is detected."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from ottla.records.batch import BatchHeader
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.recovery.epoch_check import Led, drop_decreasing, group_by_epoch, verify_epochs
from tests.storage.batches import NOW, batch, open_log

ONE = len(batch(b"a", b"b"))
SMALL = LogConfig(segment_bytes=3 * ONE)
AT_EPOCH = 12
TRUE = [(1, 0), (2, 4), (4, 8)]
"""The start offsets of epochs with two batches of two records each."""


def written(folder: Path, *epochs: int) -> Log:
    """A batch of two records for each epoch, three in a segment."""
    log = open_log(folder, SMALL)
    for epoch in epochs:
        log.append(batch(b"a", b"b"), leader_epoch=epoch, now_ms=NOW)
    return log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    found = written(tmp_path / "t-0", 1, 1, 2, 2, 4, 4)
    assert len(found.segments) == 2
    return found


def stamp(log: Log, number: int, epoch: int) -> None:
    """Damage the epoch of a batch, which no CRC covers."""
    segment = log.segments[number // 3]
    fd = os.open(segment.path, os.O_WRONLY)
    os.pwrite(fd, epoch.to_bytes(4, "big", signed=True), number % 3 * ONE + AT_EPOCH)
    os.close(fd)


def test_epochs_that_match_the_batches_are_kept(log: Log) -> None:
    assert verify_epochs(log.segments, TRUE) is TRUE
    later = [*TRUE, (7, 12)]  # of a leader that has written nothing yet
    assert verify_epochs(log.segments, later) is later


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [(2, 4), (4, 8)],  # the first is missing
        [(1, 1), (2, 4), (4, 8)],
        [(1, 0), (2, 3), (4, 8)],  # in the middle of a batch
        [(1, 0), (2, 2), (4, 8)],  # too early by a batch
        [(1, 0), (2, 6), (4, 8)],  # too late by one
        [(1, 0), (2, 4), (4, 10)],
        [(1, 0), (2, 4), (4, 6)],
        [(1, 0), (3, 4), (4, 8)],  # another epoch
        [(0, 0), (2, 4), (4, 8)],
        [(1, 0), (2, 4), (5, 8)],
        [(1, 0), (1, 2), (2, 4), (4, 8)],  # twice
        [(1, 0), (2, 4), (2, 6), (4, 8)],
        [(1, 0), (4, 8), (2, 4)],  # in another order
        [(2, 0), (1, 4), (4, 8)],
        [(1, 0), (2, 4), (3, 4), (4, 8)],  # two at one offset
        [(1, 0), (2, 4), (4, 8), (7, 20)],  # behind the end
    ],
)
def test_epochs_that_do_not_match_are_rebuilt_from_the_batches(log: Log, entries: list[tuple[int, int]]) -> None:
    assert verify_epochs(log.segments, entries) == TRUE


@pytest.mark.parametrize(("number", "epoch"), [(0, 3), (1, 9), (2, 9), (3, 3), (4, 9), (4, 2), (5, 1)])
def test_an_epoch_that_rises_and_falls_is_damage_and_starts_no_row(log: Log, number: int, epoch: int) -> None:
    stamp(log, number, epoch)
    found = verify_epochs(log.segments, [])
    others = [each for at, each in enumerate((1, 1, 2, 2, 4, 4)) if at != number]
    assert [each for each, _ in found] == sorted(set(others))
    assert all(start in (true, true + 2) for (_, start), (_, true) in zip(found, TRUE, strict=True))


def test_batches_that_no_leader_has_stamped_are_of_no_epoch(tmp_path: Path) -> None:
    log = written(tmp_path / "t-0", -1, -1, 0, 0)
    assert verify_epochs(log.segments, []) == [(0, 4)]
    assert verify_epochs(written(tmp_path / "u-0", -1, -1).segments, []) == []


def test_the_epoch_of_the_last_batch_is_accepted(tmp_path: Path) -> None:
    assert verify_epochs(written(tmp_path / "t-0", 1, 5).segments, []) == [(1, 0), (5, 2)]
    assert verify_epochs(written(tmp_path / "u-0", 1, 1, 1, 5).segments, []) == [(1, 0), (5, 6)]


def test_a_log_without_batches_has_no_epochs(tmp_path: Path) -> None:
    entries = [(3, 0)]
    assert verify_epochs(open_log(tmp_path / "t-0").segments, entries) is entries


def test_a_replica_of_a_compacted_log_may_start_before_its_first_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", SMALL)
    data = batch(b"a", b"b")
    data[:8] = (6).to_bytes(8, "big")
    data[AT_EPOCH : AT_EPOCH + 4] = (3).to_bytes(4, "big")
    log.append_as_is(data, leader_epoch=3, now_ms=NOW)
    assert log.segments[0].base_offset == 0
    entries = [(3, 6)]
    assert verify_epochs(log.segments, entries) is entries
    assert verify_epochs(log.segments, [(3, 7)]) == entries


def in_a_row(*rows: tuple[int, int, int]) -> list[Led]:
    """Batches in order: epoch, first and last offset."""
    led: list[Led] = []
    for epoch, first, last in rows:
        header = SimpleNamespace(leader_epoch=epoch, base_offset=first, last_offset=last)
        group_by_epoch(led, cast(BatchHeader, header))
    return led


def test_batches_of_one_epoch_are_one_row() -> None:
    assert in_a_row((1, 0, 4), (1, 5, 9), (2, 10, 10), (2, 11, 12), (1, 13, 13)) == [
        Led(1, 0, 9),
        Led(2, 10, 12),
        Led(1, 13, 13),
    ]


@pytest.mark.parametrize(
    ("epochs", "kept"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 9, 2], [1, 2]),
        ([9, 1, 2], [1, 2]),
        ([1, 3, 2, 4], [1, 2, 4]),
        ([5, 6, 2, 7], [5, 6, 7]),
        ([1, 9], [1, 9]),
        ([-1, 0], [-1, 0]),
        ([], []),
    ],
)
def test_rows_with_decreasing_offsets_are_dropped(epochs: list[int], kept: list[int]) -> None:
    rows = in_a_row(*((epoch, 2 * at, 2 * at + 1) for at, epoch in enumerate(epochs)))
    assert [row.epoch for row in drop_decreasing(rows)] == kept
