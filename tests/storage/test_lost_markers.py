"""Transactions with their end in a damaged range of the log: an unknown outcome is reported, not guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.records.batch import iter_headers
from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.cleaning.log_cleaning import collect_transactions
from ottla.storage.log import Log
from ottla.storage.repair import plan
from tests.storage.batches import NOW, append, open_log
from tests.storage.producing import end, send
from tests.storage.test_whole_appends import aborted

A, B = 1, 2
"""Producers."""
REFUSED = (
    r"t-0, offset 1: .*log: whether the transaction of producer 1 from offset 1 on was committed is not known, "
    r"as the log is damaged at offset 3; seek to offset 4 to go on without it"
)


def written(directory: Path, *, commit: bool) -> Log:
    """Offset 1 of A, ended at 3 and once more from 5 to 6; offsets 0, 2 and 4 are of no transaction."""
    log = open_log(directory)
    append(log, b"before")
    send(log, A, 0, transactional=True)
    append(log, b"between")
    end(log, A, commit=commit)
    append(log, b"behind")
    send(log, A, 1, transactional=True)
    end(log, A, commit=False)
    return log


def damage(log: Log, offset: int, place: int = 70) -> None:
    """Flip a bit of the batch at an offset."""
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    position = next(position for position, header in iter_headers(data) if header.base_offset == offset)
    data[position + place] ^= 1
    path.write_bytes(data)


def after_a_crash(log: Log) -> Log:
    """Open the log as a start does if only the log was on the disk."""
    log.flush()
    log.segments[0].file_path(".txnindex").unlink(missing_ok=True)
    return open_log(log.directory)


def assert_refused_around(log: Log) -> None:
    piece, none = log.read_committed(0, 1 << 20)
    assert piece is not None
    assert (piece.position, none) == (0, [])
    assert piece.size == log.segments[0].position_of(1)
    for offset in (1, 2):
        with pytest.raises(DamagedLogError, match=REFUSED):
            log.read_committed(offset, 1 << 20)
    assert [(each.producer_id, each.first_offset) for each in log.read_committed(4, 1 << 20)[1]] == [(A, 5)]
    assert log.last_stable_offset == log.end_offset == 7


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("place", [3, 10, 22, 40, 50, 70])
def test_records_of_an_undecided_transaction_are_neither_served_nor_hidden(
    tmp_path: Path, commit: bool, place: int
) -> None:
    log = written(tmp_path / "t-0", commit=commit)
    damage(log, 3, place)
    assert_refused_around(after_a_crash(log))


def test_an_unknown_outcome_stays_unknown_after_a_clean_stop(tmp_path: Path) -> None:
    log = written(tmp_path / "t-0", commit=False)
    damage(log, 3)
    for _ in range(3):
        log = after_a_crash(log) if not log.closed else open_log(tmp_path / "t-0", clean=True, recovery_point=7)
        assert_refused_around(log)
        log.close()


@pytest.mark.parametrize("place", [10, 15, 22, 40, 50, 70])
@pytest.mark.parametrize("commit", [True, False])
def test_an_index_from_before_the_damage_gives_the_outcome(tmp_path: Path, place: int, commit: bool) -> None:
    log = written(tmp_path / "t-0", commit=commit)
    log.close()
    damage(log, 3, place)
    again = open_log(tmp_path / "t-0", clean=True, recovery_point=7)
    assert aborted(again) == ([(A, 5)] if commit else [(A, 1), (A, 5)])


def test_an_index_that_does_not_match_a_damaged_log_is_rejected(tmp_path: Path) -> None:
    log = written(tmp_path / "t-0", commit=True)
    log.close()
    damage(log, 3)
    index = log.segments[0].file_path(".txnindex")
    row = bytearray(index.read_bytes())
    row[9] ^= 1  # the producer's id
    index.write_bytes(row)
    assert_refused_around(open_log(tmp_path / "t-0", clean=True, recovery_point=7))


def repaired(folder: Path) -> None:
    for each in list(plan(folder.parent, [], {})):
        each.execute()
    assert list(plan(folder.parent, [], {})) == []


@pytest.mark.parametrize("commit", [True, False])
def test_an_unknown_outcome_stays_unknown_after_a_repair(tmp_path: Path, commit: bool) -> None:
    log = written(tmp_path / "t-0", commit=commit)
    damage(log, 3)
    log.flush()
    log.segments[0].file_path(".txnindex").unlink(missing_ok=True)
    repaired(log.directory)
    for clean in (False, True, True, False):
        log = open_log(log.directory, clean=clean, recovery_point=7 if clean else 0)
        assert log.recovery is None
        assert_refused_around(log)
        log.close()


@pytest.mark.parametrize("commit", [True, False])
def test_an_index_from_before_a_repair_gives_the_outcome(tmp_path: Path, commit: bool) -> None:
    log = written(tmp_path / "t-0", commit=commit)
    log.close()
    damage(log, 3)
    repaired(log.directory)
    again = open_log(log.directory, clean=True, recovery_point=7)
    assert aborted(again) == ([(A, 5)] if commit else [(A, 1), (A, 5)])


@pytest.mark.parametrize("clean", [True, False])
def test_a_transaction_that_ended_at_the_log_end_is_not_open_after_a_repair(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path / "t-0")
    send(log, A, 0, transactional=True)
    end(log, A, commit=True)
    log.flush()
    damage(log, 1)
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    repaired(log.directory)
    again = open_log(log.directory, clean=clean, recovery_point=2)
    assert again.last_stable_offset == again.end_offset == 2
    with pytest.raises(DamagedLogError, match="whether the transaction of producer 1 from offset 0"):
        again.read_committed(0, 1 << 20)
    append(again, b"next")
    assert again.read_committed(2, 1 << 20)[0] is not None


def test_truncation_forgets_the_ranges_removed_by_a_repair(tmp_path: Path) -> None:
    log = written(tmp_path / "t-0", commit=True)
    damage(log, 3)
    log.flush()
    repaired(log.directory)
    again = open_log(log.directory, recovery_point=0)
    again.truncate_to(2, now_ms=NOW)
    end(again, A, commit=False)
    again.close()
    assert aborted(open_log(log.directory, recovery_point=0)) == [(A, 1)]


def test_a_transaction_that_continues_after_the_damage_ends_there(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    send(log, A, 0, transactional=True)
    append(log, b"damaged")
    send(log, A, 1, transactional=True)
    damage(log, 1)
    again = after_a_crash(log)
    assert again.last_stable_offset == 2
    end(again, A, commit=True)
    assert again.read_committed(2, 1 << 20)[1] == []
    with pytest.raises(DamagedLogError, match="seek to offset 2"):
        again.read_committed(0, 1 << 20)


def test_a_log_with_a_damaged_transaction_end_is_not_compacted(tmp_path: Path) -> None:
    log = written(tmp_path / "t-0", commit=True)
    damage(log, 3)
    with pytest.raises(DamagedLogError, match=REFUSED):
        collect_transactions(after_a_crash(log), 7)


def test_intact_batches_are_not_truncated_as_a_torn_tail(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for value in (b"0", b"1", b"2"):
        append(log, value)
    damage(log, 1, 3)  # its base offset
    again = after_a_crash(log)
    assert again.recovery is None
    assert again.end_offset == 3
    with pytest.raises(DamagedLogError, match=r"seek to offset 2"):
        again.read(1, 1 << 20)
    assert again.read(2, 1 << 20) is not None


@pytest.mark.behaviour("B2")
def test_a_transaction_that_ended_in_a_lost_last_segment_is_not_assumed_committed(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path / "t-0")
    append(log, b"before")
    send(log, A, 0, transactional=True)
    log.roll(NOW)
    end(log, A, commit=False)
    log.close()
    log.segments[-1].path.unlink()
    log = open_log(tmp_path / "t-0", clean=True, recovery_point=log.end_offset)
    piece, none = log.read_committed(0, 1 << 20)
    assert piece is not None
    assert (piece.size, none) == (log.segments[0].position_of(1), [])
    with pytest.raises(DamagedLogError, match="whether the transaction of producer 1 from offset 1 on was committed"):
        log.read_committed(1, 1 << 20)
