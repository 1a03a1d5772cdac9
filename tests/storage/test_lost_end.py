"""A log that is shorter than its checkpoint: the lost end is reported until an operator accepts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage import repair
from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.directory.offset_checkpoints import RECOVERY_POINTS
from ottla.storage.log import Log
from tests.storage.batches import NOW, append, bases_from, open_log
from tests.storage.lost_files import FLIGHTS, SMALL, cut, filled, opened

END = 5
"""The end offset of a log of three segments of which the last lost a record."""


def short(path: Path, *, clean: bool) -> Path:
    """A directory with a log that lost its last record."""
    folder = filled(path, 3, clean=clean)
    cut(folder, 4, (folder / f"{4:020d}.log").stat().st_size // 2)
    return path


def lost(log: Log) -> tuple[int, int]:
    """Return the offsets that a reader gets as damaged."""
    with pytest.raises(DamagedLogError) as raised:
        log.read(END, 1000)
    return raised.value.damage.offset, raised.value.damage.next_offset


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize("clean", [True, False])
def test_a_missing_end_is_still_reported_after_appends_and_restarts(tmp_path: Path, clean: bool) -> None:
    for place in range(3):
        directory, log = opened(short(tmp_path, clean=clean) if not place else tmp_path)
        assert lost(log) == (END, END + 1)
        assert append(log, b"b") == END + 1 + place
        directory.close(clean=False)  # as a kill leaves it, before any flush


def test_a_flush_does_not_clear_the_missing_range(tmp_path: Path) -> None:
    directory, log = opened(short(tmp_path, clean=False))
    append(log, b"b")
    log.flush()
    directory.close()
    assert lost(opened(tmp_path)[1]) == (END, END + 1)


@pytest.mark.parametrize("goes_on", [True, False])
def test_repair_continues_after_the_missing_range_and_reuses_no_offset(tmp_path: Path, goes_on: bool) -> None:
    short(tmp_path, clean=False)
    if goes_on:
        directory, log = opened(tmp_path)
        append(log, b"b")
        directory.close(clean=False)
    repairs = list(repair.plan(tmp_path, [FLIGHTS], {}))
    assert len(repairs) == 1
    repairs[0].execute()
    assert not list(repair.plan(tmp_path, [FLIGHTS], {}))
    _, log = opened(tmp_path)
    assert log.end_offset == END + 1 + goes_on
    assert append(log, b"c") == END + 1 + goes_on
    assert log.read(END, 1000) is not None


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("left", [1, 0])
def test_a_replica_serves_missing_records_after_fetching_them_again(tmp_path: Path, clean: bool, left: int) -> None:
    folder = filled(tmp_path, 3, clean=clean)
    cut(folder, 4, left * (folder / f"{4:020d}.log").stat().st_size // 2)
    log = open_log(folder, SMALL, clean=clean, recovery_point=END + 1, committed=END + 1)
    log.truncate_to(4 + left, now_ms=NOW)
    sent = [append(log, b"b") for _ in range(4)]
    assert sent == [*range(4 + left, 8 + left)]
    assert [bases_from(log, offset)[:1] for offset in sent] == [[offset] for offset in sent]


def test_the_message_names_the_file_that_may_be_wrong(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    opened(short(tmp_path, clean=False))
    (line,) = [message for message in caplog.messages if "the file ends before its last records" in message]
    assert (
        f"with offset {END - 1}, and by {RECOVERY_POINTS} all before {END + 1} was on the disk; if that file is wrong"
        in line
    )


@pytest.mark.parametrize("offset", [1 << 62, (1 << 63) - 1])
def test_a_checkpoint_of_an_offset_that_no_log_reaches_is_damaged(
    tmp_path: Path, offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise the next record would be acknowledged there, and lost at the next start."""
    filled(tmp_path, 3)
    (tmp_path / RECOVERY_POINTS).write_text(f"0\n1\nflights 0 {offset}\n")
    _, log = opened(tmp_path)
    assert append(log, b"b") == 6
    assert f"{RECOVERY_POINTS} has {offset} where an offset belongs" in caplog.text
