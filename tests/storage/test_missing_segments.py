"""A segment missing between others: damage if it existed, nothing if it was compacted away, whenever the process is
killed.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ottla.storage import repair
from ottla.storage.batches.damage import DamagedLogError
from ottla.storage.inspection.directory_check import find
from ottla.storage.log import Log, durability
from ottla.storage.log_config import LogConfig
from ottla.storage.segments import succession
from ottla.storage.segments.segment import Segment
from ottla.storage.segments.succession import FILE_NAME, Missing, Row, missing_segments, read_rows, write_rows
from tests.storage.batches import NOW, append, sized
from tests.storage.compacting import compact, put
from tests.storage.lost_files import SMALL, filled, lose, opened
from tests.storage.moments import Inodes, every_moment
from tests.storage.producing import end, send

pytestmark = pytest.mark.heavy

TABLE = LogConfig(segment_bytes=140, retention_ms=-1, cleanup_policy=("compact", "delete"), delete_retention_ms=0)


def faults(path: Path) -> list[Any]:
    return [fault for check in find(path).run(lambda count: None) for fault in check.faults]


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("compacted", [True, False])
def test_a_missing_segment_is_reported_and_the_rest_is_served(
    tmp_path: Path, clean: bool, compacted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    lose(filled(tmp_path, 5, clean=clean), 4)
    if compacted:
        (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nflights 0 8\n")
    for _ in range(2):  # it is not forgotten by a start
        caplog.clear()
        directory, log = opened(tmp_path)
        assert "offsets 4 to 5 are in no segment, and were not deleted" in caplog.text
        assert "ottla log repair" in caplog.text
        for offset in (4, 5):
            with pytest.raises(DamagedLogError, match=r"flights-0, offset 4: .* seek to offset 6 to go on without it"):
                log.read(offset, 1000)
        before, behind = log.read(3, 1000), log.read(6, 1000)
        assert before is not None
        assert behind is not None
        append(log, b"more")
        log.flush()
        directory.close(clean=clean)


def test_a_read_after_the_last_compacted_batch_reports_the_gap_too(tmp_path: Path) -> None:
    directory, log = opened(tmp_path, TABLE)
    for key in (b"a", b"b", b"a", b"b", b"c", b"d", b"e"):
        put(log, (key, b"1"))
    log.roll(NOW)
    log.flush()
    compact(log)
    kept = log.bases[:]
    log.flush()
    directory.close(clean=True)
    lose(log.directory, kept[1])
    log = opened(tmp_path, TABLE)[1]
    with pytest.raises(DamagedLogError, match=f"seek to offset {kept[2]} to go on"):
        log.read(log.segments[0].ranges.missing[0].offset, 1000)


def test_two_missing_neighbours_are_one_gap(tmp_path: Path) -> None:
    folder = filled(tmp_path, 5)
    lose(folder, 2, 4)
    assert missing_segments(folder) == [Missing(0, 2, 6)]


@pytest.mark.parametrize("ending", [".log.swap", ".log.cleaned"])
def test_an_unfinished_replacement_of_segments_is_not_reported(tmp_path: Path, ending: str) -> None:
    folder = filled(tmp_path, 5)
    lose(folder, 4)
    other = folder / f"{4:020d}{ending}"
    other.touch()
    assert missing_segments(folder) == []
    other.unlink()
    assert missing_segments(folder) == [Missing(2, 4, 6)]


def test_a_correct_manifest_is_not_rewritten(tmp_path: Path) -> None:
    folder = filled(tmp_path, 5)
    found = {base: os.stat(folder / f"{base:020d}.log") for base in (0, 2, 4, 6, 8)}
    assert succession.compare_segments(folder, found) == succession.Succession([], [])
    write_rows(folder, [Row(2, 4, 10, 20, 30)])
    assert succession.compare_segments(folder, found).unnoted == [2]


def test_verify_reports_it_and_repair_accepts_it(tmp_path: Path) -> None:
    lose(filled(tmp_path, 5), 4)
    (fault,) = faults(tmp_path)
    assert (fault.offset, fault.file.name) == (4, f"{2:020d}.log")
    assert "the segment that began at 4 is missing" in fault.reason
    (found,) = repair.plan(tmp_path, [], {})
    assert found.remedy == "go on without them, at offset 6"
    found.execute()
    assert not list(repair.plan(tmp_path, [], {}))
    assert not missing_segments(tmp_path / "flights-0")
    log = opened(tmp_path)[1]
    assert log.read(4, 1000) is not None


def test_deleting_the_records_before_the_gap_makes_the_log_healthy(tmp_path: Path) -> None:
    lose(filled(tmp_path, 5), 4)
    directory, log = opened(tmp_path)
    log.advance_start(6)
    assert [segment.base_offset for segment in log.retain(NOW)] == [0, 2]
    directory.checkpoint()
    directory.close(clean=False)
    assert not faults(tmp_path)
    assert opened(tmp_path)[1].read(6, 1000) is not None


def test_a_log_with_a_gap_is_not_compacted_to_keep_the_damage_visible(tmp_path: Path) -> None:
    directory, log = opened(tmp_path, TABLE)
    for number in range(9):
        put(log, (b"k", b"%d" % number))
    log.roll(NOW)
    log.flush()
    directory.close(clean=True)
    gone = log.bases[2]
    lose(log.directory, gone)
    log = opened(tmp_path, TABLE)[1]
    with pytest.raises(DamagedLogError, match="were not deleted"):
        compact(log)
    assert log.segments[1].ranges.missing


def test_a_transaction_that_may_have_ended_in_the_hole_is_neither_served_nor_hidden(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=len(sized(1000)) + 10)
    for commit in (True, False):
        log = Log.open(tmp_path / f"t-{commit:d}", config, now_ms=NOW)
        append(log, b"before")
        send(log, 1, 0, transactional=True)
        log.roll(NOW)
        end(log, 1, commit=commit)
        log.roll(NOW)
        send(log, 1, 1, transactional=True)
        end(log, 1, commit=True)
        log.close()
        lose(log.directory, 2)
        for settings in ({"clean": True}, {"recovery_point": log.end_offset}, {}):
            log = Log.open(log.directory, config, now_ms=NOW, **settings)
            assert log.read_committed(0, 1000)[1] == []
            with pytest.raises(
                DamagedLogError, match="whether the transaction of producer 1 from offset 1 on was committed"
            ):
                log.read_committed(1, 1000)
            assert log.read_committed(3, 1000)[0] is not None
            log.flush()


def foreign_cleaning(folder: Path, first: int, *others: int) -> None:
    """Compact as another broker without manifests does: nothing in the first segment is removed, and everything in the
    others.
    """
    path, last = (folder / f"{base:020d}.log" for base in (first, others[-1]))
    new = path.with_suffix(".new")
    shutil.copyfile(path, new)
    moment = last.stat()
    os.utime(new, ns=(moment.st_atime_ns, moment.st_mtime_ns // 1_000_000 * 1_000_000))
    for base in others:
        lose(folder, base)
    os.replace(new, path)


@pytest.mark.parametrize("apart_ms", [0, 50])
def test_segments_compacted_away_by_another_broker_are_not_reported(tmp_path: Path, apart_ms: int) -> None:
    folder = filled(tmp_path, 5, clean=True)
    set_times(folder, apart_ms)
    renote(folder)
    foreign_cleaning(folder, 2, 4, 6)
    assert not missing_segments(folder)
    assert not opened(tmp_path)[1].segments[1].ranges.missing


def set_times(folder: Path, apart_ms: int) -> None:
    for number, path in enumerate(sorted(folder.glob("*.log"))):
        os.utime(path, ns=((NOW + number * apart_ms) * 1_000_000 + 123_456,) * 2)


def renote(folder: Path) -> None:
    bases = sorted(int(path.stem) for path in folder.glob("*.log"))
    write_rows(
        folder, [succession.row_of(folder / f"{base:020d}.log", following) for base, following in pairwise(bases)]
    )


@pytest.mark.parametrize(("copy", "expected"), [(shutil.copy2, True), (shutil.copyfile, False)])
def test_a_missing_segment_is_reported_in_a_copied_directory_with_kept_file_times(
    tmp_path: Path, copy: Callable[[str, str], object], expected: bool
) -> None:
    folder = filled(tmp_path / "data", 5)
    set_times(folder, 10_000)
    renote(folder)
    shutil.copytree(folder, tmp_path / "flights-0", copy_function=copy)
    lose(tmp_path / "flights-0", 4)
    assert bool(missing_segments(tmp_path / "flights-0")) is expected


def test_a_log_without_a_manifest_is_not_reported_and_the_next_flush_writes_one(tmp_path: Path) -> None:
    folder = filled(tmp_path, 5)
    (folder / FILE_NAME).unlink()
    lose(folder, 4)
    directory, log = opened(tmp_path)
    assert log.read(4, 1000) is not None
    log.flush()
    assert {base: row.next_offset for base, row in read_rows(folder).items()} == {0: 2, 2: 6, 6: 8}
    directory.close(clean=True)
    lose(folder, 6)
    assert missing_segments(folder) == [Missing(2, 6, 8)]


def test_damage_of_the_manifest_is_not_taken_for_damage_of_the_log(tmp_path: Path) -> None:
    folder = filled(tmp_path, 5)
    whole = (folder / FILE_NAME).read_bytes()
    for place in range(len(whole)):
        (folder / FILE_NAME).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert not missing_segments(folder)
        (folder / FILE_NAME).write_bytes(whole[:place])
        assert not missing_segments(folder)


def test_a_torn_row_affects_no_other(tmp_path: Path) -> None:
    write_rows(tmp_path, [Row(0, 2, 10, 20, 30)])
    with (tmp_path / FILE_NAME).open("ab") as file:
        file.write(b"\n2 4 1")
    write_rows(tmp_path, [Row(4, 6, 10, 20, 30)])
    assert sorted(read_rows(tmp_path)) == [0, 4]


def test_rows_of_deleted_segments_do_not_accumulate(tmp_path: Path) -> None:
    for number in range(3000):
        write_rows(tmp_path, [Row(number, number + 1, 10, number, 30)], [number - 1, number])
    assert (tmp_path / FILE_NAME).stat().st_size < succession.KEPT_BYTES + 200
    assert read_rows(tmp_path)[2999] == Row(2999, 3000, 10, 2999, 30)
    assert len(read_rows(tmp_path)) < 3000


def test_rows_of_kept_segments_outlive_the_others(tmp_path: Path) -> None:
    for number in range(3000):
        write_rows(tmp_path, [Row(number, number + 1, 10, number, 30)], [5, number])
    rows = read_rows(tmp_path)
    assert {5, 6, 2998, 2999} <= rows.keys(), "with what followed them, be it gone"
    assert len(rows) < 2000


def test_a_manifest_is_at_most_twice_as_large_as_needed(tmp_path: Path) -> None:
    kept = range(300)
    for number in range(3000):
        write_rows(tmp_path, [Row(number % 300, 10**8 + number, 10**8, 10**13, 10**8)], kept)
        assert (tmp_path / FILE_NAME).stat().st_size <= 2 * succession.ROW_BYTES * len(kept) + succession.ROW_BYTES


def test_a_manifest_without_unneeded_rows_is_not_rewritten(tmp_path: Path) -> None:
    with mock.patch.object(succession, "replace_file") as replace_file:
        for number in range(2000):
            write_rows(tmp_path, [Row(number, number + 1, 10**8, number, 10**8)], range(2000))
    assert (tmp_path / FILE_NAME).stat().st_size > succession.KEPT_BYTES
    replace_file.assert_not_called()


def test_a_writer_without_a_list_of_kept_segments_only_appends(tmp_path: Path) -> None:
    for number in range(2000):
        write_rows(tmp_path, [Row(number, number + 1, 10**8, number, 10**8)])
    assert (tmp_path / FILE_NAME).stat().st_size > succession.KEPT_BYTES
    assert len(read_rows(tmp_path)) == 2000


def test_writing_the_manifest_leaves_no_file_open(tmp_path: Path) -> None:
    write_rows(tmp_path, [Row(0, 2, 10, 20, 30)])
    before = os.listdir("/dev/fd")
    for _ in range(3):
        write_rows(tmp_path, [Row(0, 2, 10, 20, 30)])
        succession.record_unknown(tmp_path, 0)
    assert len(os.listdir("/dev/fd")) == len(before)


def test_a_small_manifest_is_not_rewritten(tmp_path: Path) -> None:
    for number in range(20):
        write_rows(tmp_path, [Row(number, number + 1, 10, number, 30)], [number])
    assert len(read_rows(tmp_path)) == 20


def test_a_manifest_that_cannot_be_written_blocks_no_operation(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, log = opened(tmp_path)
    (log.directory / FILE_NAME).mkdir()
    for _ in range(10):
        append(log, b"a")
    log.flush()
    assert log.recovery_point == 10
    assert "a lost segment will not be detected" in caplog.text
    lose(log.directory, 4)
    assert opened_again(log).read(4, 1000) is not None


def opened_again(log: Log) -> Log:
    return Log.open(log.directory, SMALL, now_ms=NOW)


def test_a_full_disk_writes_no_manifest_and_reports_no_damage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(succession, "write_all", side_effect=full):
        write_rows(tmp_path, [Row(0, 2, 10, 20, 30)])
    assert (read_rows(tmp_path), caplog.text) == ({}, "")


def test_a_log_truncated_between_segments_may_continue_at_a_higher_offset(tmp_path: Path) -> None:
    """Continue as a follower of a leader that compacted the range."""
    with mock.patch.object(succession, "identify_file", lambda status: (status.st_size, 0, status.st_ino)):
        directory, log = opened(tmp_path)
        for _ in range(6):
            append(log, b"a")
        log.flush()
        log.truncate_to(4, now_ms=NOW)
        log.begin_segment(NOW, 9)
        append(log, b"behind")
        directory.close(clean=False)
        assert not missing_segments(log.directory)
        assert not opened(tmp_path)[1].segments[1].ranges.missing


def test_a_truncation_not_recorded_on_a_full_disk_is_not_damage(tmp_path: Path) -> None:
    directory, log = opened(tmp_path)
    for _ in range(6):
        append(log, b"a")
    log.flush()
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(succession, "write_all", side_effect=full):
        log.truncate_to(3, now_ms=NOW)
    log.begin_segment(NOW, 9)
    append(log, b"behind")
    assert not missing_segments(log.directory)
    directory.close(clean=False)


def test_a_segment_replaced_by_compaction_during_a_flush_is_not_recorded(tmp_path: Path) -> None:
    """Its file's name may be that of the other by then."""
    _, log = opened(tmp_path)
    for _ in range(6):
        append(log, b"a")
    other = Segment(log.directory, 0, log.segments[0].size, 4096)

    def row_of(path: Path, next_offset: int) -> Row:
        if next_offset == 2:
            log.replace([0], other)
        return succession.row_of(path, next_offset)

    with mock.patch.object(durability, "row_of", row_of):
        log.flush()
    assert list(read_rows(log.directory)) == [2]


@pytest.mark.parametrize(("seed", "at_once"), [(0, True), (1, False)])
def test_a_kill_during_a_compaction_is_not_taken_for_damage(tmp_path: Path, seed: int, at_once: bool) -> None:
    moments, inodes = tmp_path / "moments", Inodes()
    moments.mkdir()

    def identity(status: os.stat_result) -> tuple[int, int, int]:
        """The identity of the file of which this one is a copy; times do not identify files created at once."""
        moment = 0 if at_once else status.st_mtime_ns // 1_000_000
        return status.st_size, moment, inodes.get(status.st_ino, status.st_ino)

    with mock.patch.object(succession, "identify_file", identity):
        with every_moment(tmp_path / "data", moments, also=("pwrite",), inodes=inodes):
            Life(tmp_path / "data", random.Random(seed)).run(12)
        swapping = 0
        for moment in sorted(moments.iterdir()):
            if not (moment / "flights-0").exists():
                continue
            assert not missing_segments(moment / "flights-0"), moment
            swapping += any((moment / "flights-0").glob("*.swap"))
            log = Log.open(moment / "flights-0", TABLE, now_ms=NOW)
            assert not any(segment.ranges.missing for segment in log.segments), moment
    assert swapping > 10


class Life:
    """All that makes segments and takes them away, in any order."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path, self.chance = path, chance
        self.directory, self.log = opened(path, TABLE, replicated=True)
        self.deeds = {
            self.put: 6,
            self.compact: 3,
            self.delete: 1,
            self.flush: 3,
            self.cut: 2,
            self.anew: 0.3,
            self.restart: 1,
        }

    def run(self, count: int) -> None:
        for deed in self.chance.choices(list(self.deeds), list(self.deeds.values()), k=count):
            deed()
        self.directory.close(clean=False)

    def put(self) -> None:
        for _ in range(3):
            put(self.log, (b"%d" % self.chance.randrange(3), b""))
        self.log.advance_high_watermark(self.log.end_offset)

    def compact(self) -> None:
        self.log.flush()
        compact(self.log)

    def delete(self) -> None:
        self.log.advance_start(self.chance.randint(self.log.start_offset, self.log.high_watermark))
        self.log.retain(NOW)

    def flush(self) -> None:
        self.log.flush()
        self.directory.checkpoint()

    def cut(self) -> None:
        self.log.truncate_to(self.chance.randint(self.log.start_offset, self.log.end_offset), now_ms=NOW)

    def anew(self) -> None:
        self.log.truncate_fully_and_start_at(self.log.end_offset + self.chance.randint(0, 3), now_ms=NOW)

    def restart(self) -> None:
        self.directory.close(clean=self.chance.random() < 0.5)
        self.directory, self.log = opened(self.path, TABLE, replicated=True)
        self.log.advance_high_watermark(self.log.end_offset)
