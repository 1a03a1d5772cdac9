"""Damaged headers with wrong offsets: the base offset is not covered by the CRC."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.log import Log
from tests.storage.batches import append, bases_from, bytes_of, open_log

LEAP_BYTES = (1, 5)
"""Bytes of a batch's base offset: a flipped bit exceeds the range of a segment's index, or adds some ten thousand."""
EPOCH_BYTE = 15
DELTA_BYTE = 24
"""A byte of the last offset delta."""


def written(directory: Path, count: int) -> Log:
    """A log of batches with one record each."""
    log = open_log(directory)
    for number in range(count):
        append(log, b"record %d" % number)
    return log


def flip(log: Log, batch: int, byte: int) -> None:
    """One bit of a batch."""
    segment = log.segments[0]
    position = segment.size // log.end_offset * batch + byte
    with segment.path.open("r+b") as file:
        file.seek(position)
        value = file.read(1)[0]
        file.seek(position)
        file.write(bytes([value ^ 1]))


@pytest.mark.parametrize("byte", LEAP_BYTES)
@pytest.mark.parametrize("point", [0, 4, 10])
def test_a_leaping_offset_before_damage_loses_no_intact_batch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, point: int, byte: int
) -> None:
    log = written(tmp_path, 10)
    flip(log, 3, byte)
    flip(log, 4, -1 + log.segments[0].size // 10)
    again = open_log(tmp_path, recovery_point=point)
    assert (again.recovery, again.end_offset, again.segments[0].size) == (None, 10, log.segments[0].size)
    assert "(offsets 3 to 4) are damaged" in caplog.text


@pytest.mark.parametrize("byte", LEAP_BYTES)
def test_a_leaping_last_offset_is_ignored_even_before_a_partial_batch(tmp_path: Path, byte: int) -> None:
    log = written(tmp_path, 10)
    flip(log, 8, byte)
    flip(log, 9, -1 + log.segments[0].size // 10)
    again = open_log(tmp_path, recovery_point=4)
    assert again.end_offset == 8
    assert again.recovery is not None
    assert again.recovery.offset == 8


def test_a_leaping_last_offset_does_not_pass_the_recorded_end(tmp_path: Path) -> None:
    log = written(tmp_path, 10)
    log.close()
    flip(log, 9, DELTA_BYTE)
    assert open_log(tmp_path, recovery_point=10, clean=True).end_offset == 10


def test_a_leaping_last_offset_is_bounded_by_its_bytes_without_a_recorded_end(tmp_path: Path) -> None:
    log = written(tmp_path, 10)
    log.close()
    flip(log, 9, DELTA_BYTE)
    assert open_log(tmp_path, clean=True).end_offset == 10


def test_header_damage_loses_no_batch_after_crc_damage(tmp_path: Path) -> None:
    log = written(tmp_path, 10)
    log.close()
    flip(log, 6, EPOCH_BYTE)
    flip(log, 7, DELTA_BYTE)
    again = open_log(tmp_path, recovery_point=10, clean=False)
    for damaged in (6, 7):
        with pytest.raises(DamagedLogError, match=rf"\(offsets {damaged} to {damaged}\) are damaged"):
            bytes_of(again, damaged)
    assert bases_from(again, 8) == [8, 9]
