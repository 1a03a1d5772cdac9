"""A segment file truncated in the middle of a log: its end is missing, like a removed segment."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.records.batch import iter_headers
from ottla.settings_class import changed
from ottla.storage import repair
from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.inspection.directory_check import find
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.gaps import find_holes
from ottla.storage.segments.succession import Row, write_rows
from tests.storage.batches import NOW, append, batch, open_log, sized
from tests.storage.compacting import COMPACT, compact, put, roll
from tests.storage.lost_files import SMALL, cut, filled, lose, opened
from tests.storage.producing import end, send

ONE = len(batch(b"a"))
"""Bytes of one of the two batches of a segment."""


def reported_offsets(path: Path) -> list[int | None]:
    return [fault.offset for check in find(path).run(lambda count: None) for fault in check.faults]


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("compacted", [True, False])
@pytest.mark.parametrize(("size", "first"), [(0, 4), (ONE, 5), (ONE + 20, 5)])
@pytest.mark.parametrize("base", [0, 4])
def test_a_truncated_segment_is_reported_and_the_rest_is_served(
    tmp_path: Path, base: int, size: int, first: int, clean: bool, compacted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    cut(filled(tmp_path, 5, clean=clean), base, size)
    first += base - 4
    if compacted:
        (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nflights 0 8\n")
    for _ in range(2):  # it is not forgotten by a start
        caplog.clear()
        directory, log = opened(tmp_path)
        assert f"offsets {first} to {base + 1} are in no segment, and were not deleted: the file of" in caplog.text
        assert f"had {2 * ONE} bytes and was cut since" in caplog.text
        assert "ottla log repair" in caplog.text
        for offset in range(first, base + 2):
            with pytest.raises(DamagedLogError, match=rf"flights-0, offset {first}: .* seek to offset {base + 2} to"):
                log.read(offset, 1000)
        for offset in set(range(10)) - set(range(first, base + 2)):
            assert log.read(offset, 1000) is not None
        append(log, b"more")
        log.flush()
        directory.close(clean=clean)


@pytest.mark.parametrize(("size", "first"), [(0, 4), (ONE, 5)])
def test_verify_and_doctor_report_it_and_repair_accepts_it(tmp_path: Path, size: int, first: int) -> None:
    cut(filled(tmp_path, 5), 4, size)
    assert first in reported_offsets(tmp_path)
    assert first in [fault.offset for fault in find(tmp_path).find_quick_faults()]
    (found,) = repair.plan(tmp_path, [], {})
    assert found.remedy == "go on without them, at offset 6"
    found.execute()
    assert not list(repair.plan(tmp_path, [], {}))
    assert not list(find(tmp_path).find_quick_faults())
    assert opened(tmp_path)[1].read(first, 1000) is not None


def test_half_a_batch_that_is_left_is_set_aside(tmp_path: Path) -> None:
    folder = filled(tmp_path, 5)
    cut(folder, 4, ONE + 20)
    assert reported_offsets(tmp_path) == [5, 5]
    for found in repair.plan(tmp_path, [], {}):
        found.execute()
    assert not list(repair.plan(tmp_path, [], {}))
    assert not list(find_holes(folder))
    assert opened(tmp_path)[1].read(5, 1000) is not None


@pytest.mark.parametrize(("copy", "missed"), [(shutil.copy2, True), (shutil.copyfile, False)])
def test_it_is_reported_in_a_copied_directory_with_kept_file_times(tmp_path: Path, copy: object, missed: bool) -> None:
    folder = filled(tmp_path / "data", 5)
    shutil.copytree(folder, tmp_path / "flights-0", copy_function=copy)  # type: ignore[arg-type]
    cut(tmp_path / "flights-0", 4)
    assert bool(list(find_holes(tmp_path / "flights-0"))) is missed


def touched_a_minute_later(path: Path) -> None:
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 60_000_000_000))


def copied_with_its_times(path: Path) -> None:
    shutil.copy2(path, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize("since", [lambda path: path.chmod(0o600), touched_a_minute_later, copied_with_its_times])
def test_it_is_reported_even_if_the_file_was_touched_later(tmp_path: Path, since: Callable[[Path], None]) -> None:
    folder = filled(tmp_path, 5)
    path = folder / f"{4:020d}.log"
    cut(folder, 4, ONE)
    touched_a_minute_later(path)  # So long after it was full.
    since(path)
    assert [(found.first_offset, found.next_offset) for _, found in find_holes(folder)] == [(5, 6)]


def test_it_is_reported_in_a_directory_copied_later_with_kept_file_times(tmp_path: Path) -> None:
    folder = filled(tmp_path / "data", 5)
    cut(folder, 4, ONE)
    touched_a_minute_later(folder / f"{4:020d}.log")
    shutil.copytree(folder, tmp_path / "flights-0", copy_function=shutil.copy2)
    assert [(found.first_offset, found.next_offset) for _, found in find_holes(tmp_path / "flights-0")] == [(5, 6)]


def test_it_is_reported_if_the_next_segment_is_missing_too(tmp_path: Path) -> None:
    folder = filled(tmp_path, 5)
    cut(folder, 4, ONE)
    lose(folder, 6)
    assert [(found.first_offset, found.next_offset) for _, found in find_holes(folder)] == [(5, 8)]


def test_a_file_rewritten_by_another_broker_is_not_reported(tmp_path: Path) -> None:
    """It gives what it cleaned the time of what that was made of."""
    folder = filled(tmp_path, 5, clean=True)
    before = (folder / f"{4:020d}.log").stat()
    cut(folder, 4, ONE)
    os.utime(folder / f"{4:020d}.log", ns=(before.st_atime_ns, before.st_mtime_ns // 1_000_000 * 1_000_000))
    assert before.st_mtime_ns // 1_000_000 != (folder / f"{4:020d}.log").stat().st_ctime_ns // 1_000_000
    assert not list(find_holes(folder))


def test_a_file_compacted_by_another_broker_under_the_same_name_is_not_reported(tmp_path: Path) -> None:
    """Rewrite files as two compactions of a broker without manifests do. It gives a new file the time of its sources."""
    folder = filled(tmp_path, 5, clean=True)
    path = folder / f"{4:020d}.log"
    before = path.stat()
    cut(folder, 4)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns - 5_000_000))
    assert not list(find_holes(folder))
    assert opened(tmp_path)[1].read(4, 1000) is not None


def test_a_shorter_file_continued_by_the_next_is_complete_and_recorded_again(tmp_path: Path) -> None:
    """Truncate and append as a broker without manifests does."""
    folder = filled(tmp_path, 5, clean=True)
    path = folder / f"{4:020d}.log"
    write_rows(folder, [Row(4, 8, 10 * ONE, path.stat().st_mtime_ns // 1_000_000, path.stat().st_ino)])
    directory, log = opened(tmp_path)
    log.flush()
    directory.close(clean=True)
    cut(folder, 4, ONE)
    assert [(found.first_offset, found.next_offset) for _, found in find_holes(folder)] == [(5, 6)]


def test_a_log_truncated_by_its_follower_and_extended_again_is_complete(tmp_path: Path) -> None:
    directory, log = opened(tmp_path, replicated=True)
    for _ in range(10):
        append(log, b"a")
    log.flush()
    log.truncate_to(5, now_ms=NOW)
    log.begin_segment(NOW, 7)
    append(log, b"behind")
    log.begin_segment(NOW)
    directory.close(clean=False)
    assert not list(find_holes(log.directory))


def test_a_shortened_log_is_not_compacted_to_keep_the_damage_visible(tmp_path: Path) -> None:
    table = LogConfig(segment_bytes=140, retention_ms=-1, cleanup_policy=("compact", "delete"), delete_retention_ms=0)
    directory, log = opened(tmp_path, table)
    for number in range(9):
        put(log, (b"k", b"%d" % number))
    log.roll(NOW)
    log.flush()
    directory.close(clean=True)
    cut(log.directory, log.bases[2])
    log = opened(tmp_path, table)[1]
    with pytest.raises(DamagedLogError, match="were not deleted"):
        compact(log)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_that_may_have_ended_in_the_lost_range_is_neither_served_nor_hidden(
    tmp_path: Path, commit: bool
) -> None:
    config = LogConfig(segment_bytes=len(sized(1000)) + 10)
    log = Log.open(tmp_path / "t", config, now_ms=NOW)
    append(log, b"before")
    send(log, 1, 0, transactional=True)
    log.roll(NOW)
    end(log, 1, commit=commit)
    log.roll(NOW)
    append(log, b"behind")
    log.close()
    cut(log.directory, 2)
    log = Log.open(log.directory, config, now_ms=NOW, clean=True)
    assert log.read_committed(0, 1000)[1] == []
    with pytest.raises(DamagedLogError, match="whether the transaction of producer 1 from offset 1 on was committed"):
        log.read_committed(1, 1000)
    assert log.read_committed(3, 1000)[0] is not None


def test_a_torn_last_segment_is_no_hole(tmp_path: Path) -> None:
    directory, log = opened(tmp_path)
    for _ in range(9):
        append(log, b"a")
    log.flush()
    directory.close(clean=False)
    cut(log.directory, 8, ONE - 3)
    assert not list(find_holes(log.directory))
    log = Log.open(log.directory, SMALL, now_ms=NOW)
    assert (log.end_offset, [segment.ranges.damages for segment in log.segments]) == (8, [[]] * 5)


@pytest.mark.behaviour("B2")
def test_compacted_offsets_before_a_truncated_range_lead_to_its_error(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", changed(COMPACT, index_interval_bytes=1, segment_bytes=500))
    for key in (b"first", b"again", b"again", b"last", b"again"):
        put(log, (key, bytes(50)))
        if key == b"last":
            roll(log)
    roll(log)
    compact(log)
    log.close()
    path = log.segments[0].path
    positions = [(position, header.base_offset) for position, header in iter_headers(path.read_bytes())]
    assert [offset for _, offset in positions] == [0, 3]
    os.truncate(path, positions[1][0] + 70)
    log = open_log(log.directory, log.config, clean=True, recovery_point=log.end_offset)
    for offset in (1, 2, 3):
        with pytest.raises(DamagedLogError, match="seek to offset 4 to go on"):
            log.read(offset, 1000)
