"""Transaction indexes of compacted logs: which rows are valid after compaction removed records or markers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.records.batch import iter_headers
from ottla.storage.indexes.transaction_index import ROW
from ottla.storage.log import Log
from tests.storage.batches import append, open_log
from tests.storage.compacting import roll
from tests.storage.producing import end, send

A, B = 7, 8
"""Producers."""
END = 6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Offset 0 of A, aborted at 2, and 1 of B, committed at 3, in a full segment; 4 of A again, aborted at 5."""
    log = open_log(tmp_path / "t-0")
    send(log, A, 0, transactional=True)
    send(log, B, 0, transactional=True)
    end(log, A, commit=False)
    end(log, B, commit=True)
    roll(log)
    send(log, A, 1, transactional=True)
    end(log, A, commit=False)
    log.close()
    return log.directory


def take(folder: Path, *offsets: int) -> None:
    """Remove those batches from the first segment and fit its indexes to the rest, as compaction does."""
    path = folder / f"{0:020d}.log"
    data = path.read_bytes()
    left = [
        data[position : position + header.size_bytes]
        for position, header in iter_headers(data)
        if header.base_offset not in offsets
    ]
    path.write_bytes(b"".join(left))
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).write_bytes(b"")


def reopened(folder: Path) -> Log:
    return open_log(folder, clean=True, recovery_point=END)


def aborted(log: Log) -> list[tuple[int, int, int]]:
    return [(each.producer_id, each.first_offset, each.last_offset) for each in log.find_aborted(0, 0, END)]


def test_a_marker_still_belongs_to_its_compacted_transaction_after_other_writes(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = (folder / f"{0:020d}.txnindex").read_bytes()
    take(folder, 0)
    assert aborted(reopened(folder)) == [(A, 0, 2), (A, 4, 5)]
    assert (folder / f"{0:020d}.txnindex").read_bytes() == rows
    assert "rebuilding it" not in caplog.text


def test_a_row_with_a_compacted_marker_hides_no_record_and_is_kept(folder: Path) -> None:
    take(folder, 0, 2)
    assert aborted(reopened(folder)) == [(A, 0, 2), (A, 4, 5)]


def test_a_row_that_names_a_commit_marker_is_rejected(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    take(folder, 1)
    path = folder / f"{0:020d}.txnindex"
    path.write_bytes(path.read_bytes() + ROW.pack(0, B, 1, 3, 3))
    assert aborted(reopened(folder)) == [(A, 0, 2), (A, 4, 5)]
    assert "rebuilding it" in caplog.text


def test_a_row_beyond_the_log_end_is_rejected(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = folder / f"{4:020d}.txnindex"
    for last_offset in (END, END + 9):
        rows = path.read_bytes()
        path.write_bytes(rows + ROW.pack(0, B, 5, last_offset, 5))
        log = reopened(folder)
        assert aborted(log) == [(A, 0, 2), (A, 4, 5)]
        log.close()
        assert path.read_bytes() == rows
    assert caplog.text.count("rebuilding it") == 2


def test_a_damaged_file_is_reported_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = folder / f"{0:020d}.txnindex"
    path.write_bytes(path.read_bytes()[:-1])
    assert aborted(reopened(folder)) == [(A, 0, 2), (A, 4, 5)]
    assert caplog.text.count("rebuilding it") == 1


def test_no_aborted_transactions_are_reported_when_there_are_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"plain")
    log.close()
    assert aborted(open_log(log.directory, clean=True, recovery_point=1)) == []
    assert caplog.text == ""
