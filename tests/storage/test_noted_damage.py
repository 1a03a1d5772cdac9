"""Damage in what a start after a crash believes without a look at every CRC."""

from __future__ import annotations

from pathlib import Path

from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_state import AbortedTransaction
from tests.storage.batches import NOW, append, open_log
from tests.storage.producing import end, send

INDEXED = LogConfig(index_interval_bytes=1)
"""Each batch has an entry, but for the first."""


def test_at_its_end_it_hides_no_transaction_that_lies_behind_it_in_the_same_segment(tmp_path: Path) -> None:
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
    assert again.aborted(0, 0, again.end_offset) == [AbortedTransaction(3, 4, 5, 6)]
    assert again.producers.entries[1].last_sequence == 3
    assert again.producers.open == {6: 4}
