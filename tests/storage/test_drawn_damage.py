"""A start after a crash on drawn logs, each damaged in one place or several: what is whole stays, and is what it was."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.records.batch import iter_headers
from ottla.storage.log import Log
from tests.storage.batches import open_log
from tests.storage.drawn import SMALL, state, write

SEEDS = range(1, 81)
SEVERAL = (*range(1, 41), 1185, 2210, 3066, 3268, 3891, 4462)
"""Seeds. The last ones once recovered to an end that was never written, or lost undamaged batches."""


class Damaged(NamedTuple):
    """A log on the disk."""

    folder: Path
    file: str
    whole: set[int]
    """The first offsets of its batches in that file that were left alone."""
    end: int
    point: int


def damaged(folder: Path, seed: int, *, places: Sequence[int] = ()) -> Damaged:
    """A log of random records with random damage: in one range, or in one of the numbers of `places`."""
    chance = random.Random(seed)
    log = open_log(folder, SMALL)
    while log.end_offset < 2:
        write(log, chance)
    if chance.random() < 0.5:
        log.epochs.flush(log.end_offset)
    file = chance.choice([each for each in sorted(folder.glob("*.log")) if each.stat().st_size])
    before = file.read_bytes()
    data = bytearray(before)
    for _ in range(chance.choice(places) if places else 1):
        start, count = chance.randrange(len(data)), chance.choice([1, 20, 100])
        data[start : start + count] = chance.randbytes(len(data[start : start + count]))
    file.write_bytes(data)
    whole = {
        header.base_offset
        for position, header in iter_headers(bytearray(before))
        if data[position : position + header.size_bytes] == before[position : position + header.size_bytes]
    }
    return Damaged(folder, file.name, whole, log.end_offset, chance.randrange(log.end_offset + 1))


def started(log: Damaged) -> tuple[Log, set[int]]:
    """It after a start, and the first offsets of the batches that are served of the damaged file."""
    found = open_log(log.folder, SMALL, recovery_point=log.point)
    segments = {each.path.name: each for each in found.segments}
    return found, {each.header.base_offset for each in segments[log.file].batches()}


@pytest.mark.parametrize("seed", SEVERAL)
def test_intact_batches_are_served_with_any_number_of_damaged_ranges(tmp_path: Path, seed: int) -> None:
    log = damaged(tmp_path, seed, places=(2, 3))
    found, served = started(log)
    assert log.whole <= served
    assert log.point <= found.end_offset <= log.end


@pytest.mark.parametrize("seed", SEEDS)
def test_intact_batches_are_served_and_a_second_start_finds_the_same_damage(tmp_path: Path, seed: int) -> None:
    log = damaged(tmp_path, seed)
    found, served = started(log)
    assert log.whole <= served
    assert log.point <= found.end_offset <= log.end
    end, producers, transactions, *_, aborted = state(found)
    again = state(open_log(tmp_path, SMALL, recovery_point=log.point))
    assert (again[0], again[1], again[2], again[-1]) == (end, producers, transactions, aborted)
