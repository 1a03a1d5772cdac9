"""A process that is killed during a compaction, and operations that run during a compaction."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.records.batch import iter_headers, verify
from ottla.storage.cleaning.cleaner import Cleaner
from ottla.storage.cleaning.key_map import ENTRY_BYTES, KeyMap
from ottla.storage.cleaning.log_cleaning import clean_in_steps, collect_transactions, find_extents, plan_log_compaction
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.segment_list import READER_LOCK
from tests.storage.batches import NOW, everything, open_log
from tests.storage.compacting import COMPACT, SEED, compact, kept, put, roll
from tests.storage.compactor import CONFIG, TABLE, key_of

ROUNDS, MOST_ROUNDS = 6, 60
PATIENCE = 60.0


def compact_and_be_killed(directory: Path, seed: int, updates: int) -> int:
    """Run the compactor until it printed so many updates, kill it, and return the last."""
    command = [sys.executable, "-m", "tests.storage.compactor", str(directory), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = -1
        for _ in range(updates):
            said = int(process.stdout.readline())
        process.kill()
        for line in process.stdout:
            if line.endswith("\n"):
                said = int(line)
    return said


def test_the_last_value_of_each_key_survives_kill_9_in_a_compaction(tmp_path: Path) -> None:
    chance = random.Random(20)
    begun = compacted = turn = 0
    while turn < ROUNDS or not begun:
        assert turn < MOST_ROUNDS, "no kill came while files were written or exchanged"
        turn += 1
        said = compact_and_be_killed(tmp_path, turn, chance.randrange(50, 400))
        names = {path.suffix for path in (tmp_path / "table-0").iterdir()}
        begun += bool(names & {".cleaned", ".swap"})
        directory = DataDirectory.open(tmp_path, node_id=1)
        log = directory.open_log(TABLE, CONFIG, now_ms=NOW)
        assert log.end_offset > said
        data = everything(log)
        for position, header in iter_headers(data):
            verify(data, position, header)
        found = kept(log)
        assert [record.offset for record in found] == sorted({record.offset for record in found})
        assert all(record.key == key_of(record.offset) for record in found)
        assert all((record.value or b"").startswith(b"%d" % record.offset) for record in found)
        last = {key_of(number): number for number in range(log.end_offset)}
        assert {record.key: record.offset for record in found} == last
        compacted += len(found) < log.end_offset
        directory.close(clean=False)
    assert compacted > turn / 2


def filled(directory: Path, config: LogConfig = COMPACT) -> Log:
    """A log of several segments, all but the last to be compacted."""
    log = open_log(directory, config)
    for number in range(60):
        put(log, (b"%d" % (number % 5), b"%d" % number * 20), timestamp=NOW + number)
    roll(log)
    return log


def compact_interleaved(log: Log, meanwhile: Callable[[], None]) -> list[str]:
    """Compact in a thread, interleave an action with each step, and return the names of the steps."""
    reached, go_on = threading.Event(), threading.Event()
    breaths = 0

    def breathe(size: int) -> None:
        nonlocal breaths
        breaths += 1
        reached.set()
        assert go_on.wait(PATIENCE)
        go_on.clear()

    plan = plan_log_compaction(log, 0, NOW)
    log.cleaning = True
    cleaner = Cleaner(
        log.directory,
        find_extents(log, plan.upper_bound),
        plan,
        log.config,
        keys=KeyMap(100 * ENTRY_BYTES, SEED),
        now_ms=NOW,
        transactions=collect_transactions(log, plan.upper_bound),
        breathe=breathe,
    )
    taken = []
    for step in clean_in_steps(log, cleaner):
        taken.append(getattr(step, "func", step).__name__)
        failed: list[BaseException] = []
        thread = threading.Thread(target=run, args=(step, failed, reached))
        thread.start()
        while thread.is_alive():
            assert reached.wait(PATIENCE)
            reached.clear()
            if thread.is_alive():
                meanwhile()
            go_on.set()
            thread.join(0.01)
        assert not failed, failed
        go_on.clear()
    log.cleaning = False
    assert breaths > 2
    return taken


def run(step: Callable[[], None], failed: list[BaseException], reached: threading.Event) -> None:
    try:
        step()
    except BaseException as error:
        failed.append(error)
    finally:
        reached.set()


def test_appends_flushes_reads_and_retention_continue_during_a_compaction(tmp_path: Path) -> None:
    log = filled(tmp_path / "t-0", LogConfig(cleanup_policy=("compact", "delete"), segment_bytes=1000, retention_ms=50))
    chance, appended = random.Random(3), []

    def meanwhile() -> None:
        appended.append(put(log, (b"new", b"x" * 300), timestamp=NOW + 10**6))
        log.flush()
        assert log.retain(NOW + 10**6) == [], "not while the files are in use"
        offset = chance.randrange(log.start_offset, log.end_offset)
        with READER_LOCK:
            piece = log.read(offset, 10_000)
        assert piece is not None
        log.advance_start(7)

    compact_interleaved(log, meanwhile)
    found = kept(log)
    last = {b"%d" % (number % 5): number for number in range(60)}
    assert {record.key: record.offset for record in found if record.key != b"new"} == last
    assert {record.offset for record in found if record.key == b"new"} == set(appended)
    assert log.size_bytes == sum(path.stat().st_size for path in log.directory.glob("*.log"))
    again = open_log(log.directory, log.config, recovery_point=log.recovery_point, start_offset=log.start_offset)
    assert kept(again) == found
    # A segment that was emptied is as old as its file, by the real clock.
    assert again.retain(2 * NOW)
    assert kept(again) == []


def test_a_slice_read_before_a_compaction_stays_valid(tmp_path: Path) -> None:
    log = filled(tmp_path / "t-0")
    piece = log.read(0, 500)
    assert piece is not None
    before = os.pread(piece.file.fileno(), piece.size, piece.position)
    compact(log)
    assert os.pread(piece.file.fileno(), piece.size, piece.position) == before


def test_a_log_deleted_during_its_compaction_stays_deleted(tmp_path: Path) -> None:
    log = filled(tmp_path / "t-0")

    def meanwhile() -> None:
        if not log.closed:
            log.delete()

    with pytest.raises(AssertionError, match=r"FileNotFoundError|No such file"):
        compact_interleaved(log, meanwhile)
    assert list(tmp_path.iterdir()) == []


def peak_bytes() -> int:
    """The most memory that was resident since `forget_peak`."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def test_memory_is_bounded_for_any_number_of_keys(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(cleanup_policy=("compact",), segment_bytes=1 << 20))
    for start in range(0, 60_000, 1000):
        put(log, *((b"key-%d" % number, b"x" * 200) for number in range(start, start + 1000)))
    roll(log)
    compact(log, room_bytes=1 << 18)
    put(log, (b"key-0", b""))
    roll(log)
    forget_peak()
    before = peak_bytes()
    compact(log, room_bytes=1 << 18)
    # Of a log of 13 MB, with keys for a dozen passes: the map, blocks to read and to write, and a batch.
    assert peak_bytes() - before < 6 << 20
    assert log.size_bytes > 12 << 20
