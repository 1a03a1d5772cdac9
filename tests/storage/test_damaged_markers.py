"""Damage in files that a start uses without checking every CRC."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_state import AbortedTxn
from tests.storage.batches import NOW, append, bases_from, open_log
from tests.storage.producing import end, send

INDEXED = LogConfig(index_interval_bytes=1)
"""Each batch has an entry, but for the first."""


def test_damage_hides_no_later_transaction_of_the_same_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, INDEXED)
    for sequence in range(4):
        send(log, 1, sequence)
    start = log.segments[0].size
    send(log, 3, 0, transactional=True)
    end(log, 3, commit=False)
    send(log, 4, 0, transactional=True)
    log.begin_segment(NOW)
    append(log, b"behind it")
    with log.segments[0].path.open("r+b") as file:
        file.seek(start * 2 // 4 + 16)
        file.write(b"\x07")  # the format of the third batch
    again = open_log(tmp_path, INDEXED, recovery_point=4)
    assert again.find_aborted(0, 0, again.end_offset) == [AbortedTxn(3, 4, 5, 6)]
    assert again.producers.entries[1].last_sequence == 3
    assert again.producers.open == {6: 4}


@pytest.mark.parametrize("read_before", [True, False])
def test_crc_damage_is_known_after_its_first_read(tmp_path: Path, read_before: bool) -> None:
    log = open_log(tmp_path, INDEXED)
    for _ in range(5):
        append(log, b"a")
    log.close()
    with log.segments[0].path.open("r+b") as file:
        file.seek(log.segments[0].size // 5 * 3 - 1)
        file.write(b"\x07")  # the last byte of the third batch
    again = open_log(tmp_path, INDEXED, clean=True, recovery_point=5)
    if read_before:
        assert bases_from(again, 0) == [0, 1, 2, 3, 4], "headers tell nothing of it"
    damage = again.find_damage(1)
    assert damage is not None
    assert (damage.offset, damage.next_offset) == (2, 3)
    assert again.find_damage(0) == damage
    assert list(again.known_damages()) == [damage]
    assert (bases_from(again, 0), bases_from(again, 3)) == ([0, 1], [3, 4])
    with pytest.raises(DamagedLogError, match="seek to offset 3 to go on without it"):
        again.read(2, 1000)
