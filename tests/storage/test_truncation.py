"""Cutting a log: what is left is a part of it from its start on, in every respect and at every moment."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ottla.errors import KafkaError
from ottla.model import Buffer, TopicPartition
from ottla.records.batch import iter_headers
from ottla.records.control import ControlType
from ottla.records.end_marker import EndMarker, encode_end_marker
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.files import checkpoint, durable
from ottla.storage.log import Log
from ottla.storage.log import log as log_module
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import Origin
from tests.storage.batches import NOW, append, batch, bytes_of, everything, open_log
from tests.storage.faulty_disk import CALLS
from tests.storage.producing import end, produced, send
from tests.storage.test_following import SMALL, files_of, follow, producers_of

FLIGHTS = TopicPartition("flights", 0)
LENGTH = 40


def eventful(log: Log, count: int = LENGTH, seed: int = 1) -> Log:
    """Fill a log with data, transactions that are committed, aborted and open, and three leaders' epochs."""
    chance, sequences = random.Random(seed), dict.fromkeys(range(4), 0)
    for number in range(count):
        id_, kind, epoch = chance.randrange(4), chance.random(), number * 3 // count
        if kind < 0.3:
            data: Buffer = batch(bytes(chance.randrange(100)), timestamps=[NOW + chance.randrange(100)])
            log.append(data, leader_epoch=epoch, now_ms=NOW)
        elif kind < 0.5 and log.producers.open:
            marker = EndMarker(chance.choice((ControlType.ABORT, ControlType.COMMIT)), 0)
            data = encode_end_marker(next(iter(log.producers.open.values())), 0, marker, NOW)
            log.append(data, leader_epoch=epoch, now_ms=NOW, origin=Origin.COORDINATOR)
        else:
            data = produced(id_, sequences[id_], 2, transactional=id_ > 0)
            log.append(data, leader_epoch=epoch, now_ms=NOW)
            sequences[id_] += 2
    return log


def fresh(path: Path, data: bytes) -> Log:
    """A log that never had anything else."""
    log = open_log(path / "fresh" / "t-0", SMALL, committed=0)
    if data:
        log.append_as_is(data, leader_epoch=99, now_ms=NOW)
    return log


def ends_of(log: Log) -> list[int]:
    return [0, *(header.next_offset for _, header in iter_headers(everything(log)))]


@pytest.mark.parametrize("clean", [True, False])
def test_a_truncated_log_equals_a_log_that_was_never_longer(tmp_path: Path, clean: bool) -> None:
    whole = eventful(open_log(tmp_path / "whole" / "t-0", SMALL, committed=0))
    whole.close()
    for number, cut in enumerate(ends_of(whole)[clean::2]):
        folder = tmp_path / f"{number}" / "t-0"
        shutil.copytree(whole.directory, folder)
        log = open_log(folder, SMALL, committed=0, clean=clean, recovery_point=whole.end_offset if clean else 0)
        assert log.truncate_to(cut, now_ms=NOW) == cut
        expected = fresh(tmp_path / f"{number}", everything(log))
        assert everything(whole).startswith(everything(log))
        assert (log.end_offset, log.size_bytes) == (expected.end_offset, expected.size_bytes) == (cut, log.size_bytes)
        assert producers_of(log) == producers_of(expected)
        assert log.epochs.entries == expected.epochs.entries
        assert log.read_committed(0, 1 << 30)[1] == expected.read_committed(0, 1 << 30)[1]
        for each in (log, expected):
            each.close()
        assert sizes_of(log) == sizes_of(expected)


def sizes_of(log: Log) -> list[tuple[str, int]]:
    return sorted((path.name, path.stat().st_size) for path in log.directory.glob("*.log") if path.stat().st_size)


def test_a_batch_that_contains_the_offset_is_removed_whole(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", committed=0)
    append(log, b"a", b"b")
    append(log, b"c", b"d", b"e")
    assert log.truncate_to(3, now_ms=NOW) == 2
    assert log.end_offset == 2
    assert append(log, b"f") == 2


def test_a_truncation_beyond_the_end_changes_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", committed=0)
    append(log, b"a")
    assert log.truncate_to(5, now_ms=NOW) == 1
    assert (log.end_offset, log.epochs.entries) == (1, [(0, 0)])


def test_truncation_lowers_the_watermark_and_reopens_an_ended_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", committed=0)
    send(log, 1, 0, 2, transactional=True)
    end(log, 1, commit=False)
    log.advance_high_watermark(3)
    log.truncate_to(2, now_ms=NOW)
    assert (log.high_watermark, log.last_stable_offset, log.producers.open) == (2, 0, {0: 1})
    end(log, 1, commit=True)
    log.advance_high_watermark(3)
    assert (log.last_stable_offset, log.read_committed(0, 1000)[1]) == (3, [])


def test_a_truncated_batch_is_not_a_repeat_when_sent_again(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", committed=0)
    send(log, 1, 0, 3)
    send(log, 1, 3, 2)
    log.truncate_to(3, now_ms=NOW)
    again = send(log, 1, 3, 2)
    assert (again.base_offset, again.repeated) == (3, False)
    assert send(log, 1, 0, 3).repeated


def test_a_snapshot_from_after_the_truncation_point_is_not_used(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", SMALL, committed=0)
    for number in range(30):
        send(log, 1, number)
    log.truncate_to(4, now_ms=NOW)
    assert not [path for path in log.directory.glob("*.snapshot") if int(path.stem) > 4]
    for _ in range(30):
        append(log, b"other")
    kept = log.producers
    log.flush()
    again = open_log(log.directory, SMALL, committed=0, recovery_point=log.recovery_point)
    assert again.producers.entries[1].last_offset == kept.entries[1].last_offset == 3


def test_a_snapshot_written_during_a_truncation_does_not_survive_it(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", SMALL, committed=0)
    send(log, 1, 0, 9)
    log.flush()
    late = log.keeping_producers()
    assert late is not None
    log.truncate_to(0, now_ms=NOW)
    late()
    assert not list(log.directory.glob("*.snapshot"))


def test_a_flush_that_ends_after_a_truncation_does_not_raise_the_recovery_point(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", SMALL, committed=0)
    for _ in range(5):
        append(log, b"a")
    real, calls = os.fsync, list[int]()

    def cut_meanwhile(fd: int) -> None:
        real(fd)
        if not calls:
            calls.append(fd)
            log.truncate_to(2, now_ms=NOW)

    with mock.patch.object(os, "fsync", cut_meanwhile):
        log.flush()
    assert log.recovery_point <= log.end_offset == 2


def test_a_truncation_below_the_first_segment_resets_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", SMALL, committed=0)
    send(log, 1, 0, 9)
    log.truncate_fully_and_start_at(500, now_ms=NOW)
    found = (log.start_offset, log.high_watermark, log.end_offset, log.bases, len(log.producers), log.epochs.entries)
    assert found == (500, 500, 500, [500], 0, [])
    assert log.truncate_to(40, now_ms=NOW) == 40
    assert (log.start_offset, log.high_watermark, log.end_offset, append(log, b"a")) == (40, 40, 40, 40)


def test_a_reset_log_has_no_epochs_after_a_crash_either(tmp_path: Path) -> None:
    log = eventful(open_log(tmp_path / "t-0", committed=0))
    log.flush()
    log.truncate_fully_and_start_at(500, now_ms=NOW)
    shutil.copytree(tmp_path / "t-0", tmp_path / "crashed" / "t-0")
    found = open_log(tmp_path / "crashed" / "t-0", committed=0)
    assert (found.end_offset, found.epochs.entries) == (500, [])


def test_truncation_removes_a_damaged_range_at_the_end(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", committed=0)
    for number in range(6):
        append(log, b"%d" % number * 40)
    log.close()
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[-60] ^= 1
    path.write_bytes(data)
    log = open_log(log.directory, committed=0, clean=False, recovery_point=6)
    log.truncate_to(4, now_ms=NOW)
    append(log, b"new")
    assert [header.base_offset for _, header in iter_headers(everything(log))] == [0, 1, 2, 3, 4]
    assert len(log.bases) == 1


def test_during_a_compaction_only_the_last_segment_is_truncated(tmp_path: Path) -> None:
    log = eventful(open_log(tmp_path / "t-0", SMALL, committed=0))
    log.cleaning = True
    before = everything(log)
    with pytest.raises(KafkaError, match="is being compacted"):
        log.truncate_to(3, now_ms=NOW)
    assert everything(log) == before
    append(log, b"last")
    assert log.truncate_to(log.end_offset - 1, now_ms=NOW) == log.end_offset


@pytest.mark.parametrize("seed", range(6))
def test_a_follower_that_changes_its_leader_ends_with_the_leaders_bytes(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    first = eventful(open_log(tmp_path / "first" / "t-0", SMALL), seed=seed)
    log = open_log(tmp_path / "follower" / "t-0", SMALL, committed=0)
    follow(first, log)
    common = chance.choice(ends_of(first))
    second = open_log(tmp_path / "second" / "t-0", SMALL)
    second.append_as_is(everything(first)[: position_of(first, common)], leader_epoch=9, now_ms=NOW)
    for number in range(20):
        second.append(batch(bytes(number * 9)), leader_epoch=7, now_ms=NOW)
    log.truncate_to(common, now_ms=NOW)
    if chance.random() < 0.5:
        log = open_log(log.directory, SMALL, committed=0)
    follow(second, log)
    for each in (log, second):
        each.close()
    assert files_of(log) == files_of(second)


def position_of(log: Log, offset: int) -> int:
    """Bytes of the batches before an offset."""
    return sum(header.size_bytes for _, header in iter_headers(everything(log)) if header.next_offset <= offset)


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_before(number: int, end: Callable[[], BaseException] = Killed) -> Iterator[list[str]]:
    """End the process before the file operation with that number, or let it and all later ones fail."""
    done: list[str] = []

    def dying(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **more: Any) -> Any:
            if len(done) == number:
                raise end()
            if name != "open" or arguments[1] & os.O_CREAT:
                done.append(name)
            return real(*arguments, **more)

        return operation

    with ExitStack() as patches:
        for name in CALLS:
            patches.enter_context(mock.patch.object(os, name, dying(name, getattr(os, name))))
        yield done


def steps(tmp_path: Path, work: Callable[[Log], object]) -> Iterator[tuple[Log, bytes]]:
    """Yield the log of a start after a kill before each step of `work`, with the content before `work`."""
    source = DataDirectory.open(tmp_path / "source", node_id=1)
    log = eventful(source.open_log(FLIGHTS, SMALL, now_ms=NOW, replicated=True))
    log.flush()
    source.checkpoint()
    before = everything(log)
    source.close(clean=False)
    for number in range(100):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "source", folder)
        directory = DataDirectory.open(folder, node_id=1)
        log = directory.open_log(FLIGHTS, SMALL, now_ms=NOW, replicated=True)
        assert everything(log) == before
        with killed_before(number) as done:
            try:
                work(log)
                over = True
            except Killed:
                over = False
        directory.close(clean=False)
        directory = DataDirectory.open(folder, node_id=1)
        yield directory.open_log(FLIGHTS, SMALL, now_ms=NOW, replicated=True), before
        directory.close(clean=False)
        if over:
            assert len(done) > 5
            return
    raise AssertionError("the work never ended")


def must_be_a_part_of(log: Log, before: bytes, tmp_path: Path) -> None:
    found = everything(log)
    assert before.startswith(found)
    assert not any(segment.is_damaged for segment in log.segments)
    expected = fresh(tmp_path, found)
    assert producers_of(log) == producers_of(expected)
    assert log.epochs.entries == expected.epochs.entries
    assert log.read_committed(0, 1 << 30)[1] == expected.read_committed(0, 1 << 30)[1]
    shutil.rmtree(tmp_path / "fresh")


@pytest.mark.parametrize("cut", [0, 21, 45])
def test_a_kill_at_any_step_of_a_truncation_leaves_a_prefix_of_the_log(tmp_path: Path, cut: int) -> None:
    ends = []
    for log, before in steps(tmp_path, lambda log: log.truncate_to(cut, now_ms=NOW)):
        must_be_a_part_of(log, before, tmp_path)
        ends.append(log.end_offset)
    assert ends == sorted(ends, reverse=True)
    assert ends[0] > cut >= ends[-1] > cut - 3


def fails() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_reset_that_failed_at_any_step_succeeds_when_retried(tmp_path: Path) -> None:
    for number in range(100):
        log = eventful(open_log(tmp_path / str(number) / "t-0", SMALL, committed=0))
        log.advance_high_watermark(log.end_offset)
        log.flush()
        with killed_before(number, fails):
            try:
                log.truncate_fully_and_start_at(1000, now_ms=NOW)
                over = True
            except KafkaError:
                over = False
        if log.closed:  # without a segment it is opened again
            log = open_log(log.directory, SMALL, committed=0)
        assert log.high_watermark <= log.end_offset
        log.truncate_fully_and_start_at(1000, now_ms=NOW)
        assert (log.start_offset, log.end_offset, log.high_watermark, log.bases) == (1000, 1000, 1000, [1000])
        assert (log.size_bytes, producers_of(log)[1], log.epochs.entries, log._ended_above_watermark) == (0, {}, [], {})
        assert not log.producers.entries
        if over:
            return
    raise AssertionError("it never succeeded")


@pytest.mark.parametrize("cut", [0, 21, 45, None])
def test_a_truncation_that_failed_at_any_step_succeeds_when_retried(tmp_path: Path, cut: int | None) -> None:
    for number in range(100):
        log = eventful(open_log(tmp_path / str(number) / "t-0", SMALL, committed=0))
        log.advance_high_watermark(log.end_offset)
        log.flush()
        offset = log.bases[-2] if cut is None else cut
        with killed_before(number, fails):
            try:
                log.truncate_to(offset, now_ms=NOW)
                over = True
            except KafkaError:
                over = False
        assert log.high_watermark <= log.end_offset
        assert log.truncate_to(offset, now_ms=NOW) == log.end_offset <= offset
        expected = fresh(tmp_path / f"{number}", everything(log))
        for each in (log, expected):
            each.advance_high_watermark(log.end_offset)
        assert (log.size_bytes, log.epochs.entries) == (expected.size_bytes, expected.epochs.entries)
        assert producers_of(log) == producers_of(expected)
        assert log.read_committed(0, 1 << 30)[1] == expected.read_committed(0, 1 << 30)[1]
        if over:
            return
    raise AssertionError("the cut never succeeded")


def test_appends_after_a_partly_failed_truncation_work_as_after_a_complete_one(
    tmp_path: Path,
) -> None:
    failed = 0
    for number in range(100):
        log = eventful(open_log(tmp_path / str(number) / "t-0", SMALL, committed=0))
        offset = log.bases[-2]
        with killed_before(number, fails):
            try:
                log.truncate_to(offset, now_ms=NOW)
                break
            except KafkaError:
                pass
        if log.end_offset > offset:
            continue  # The leader reports the divergence again.
        leader = fresh(tmp_path / f"{number}", everything(log))
        more = produced(1, 40, 2, transactional=True)
        leader.append(more, leader_epoch=leader.epochs.latest(), now_ms=NOW, origin=Origin.COORDINATOR)
        with mock.patch.object(log_module, "sync_path", side_effect=durable.sync_path) as forced:
            log.append_as_is(everything(leader)[log.size_bytes :], leader_epoch=9, now_ms=NOW)
        forced.assert_called_with(log.directory)
        assert everything(log) == everything(leader)
        assert producers_of(log) == producers_of(leader)
        assert log.epochs.entries == leader.epochs.entries
        failed += 1
    assert failed


def test_a_kill_at_any_step_of_a_reset_leaves_a_prefix_of_the_log(tmp_path: Path) -> None:
    ends = []
    for log, before in steps(tmp_path, lambda log: log.truncate_fully_and_start_at(1000, now_ms=NOW)):
        if log.end_offset < 1000:
            must_be_a_part_of(log, before, tmp_path)
        ends.append(log.end_offset)
    assert 0 in ends
    assert ends[-1] == 1000


def test_a_kill_after_a_truncation_and_new_appends_keeps_the_new_batches(tmp_path: Path) -> None:
    def cut_and_go_on(log: Log) -> None:
        log.truncate_to(21, now_ms=NOW)
        for number in range(12):
            log.append(batch(b"other" * number), leader_epoch=5, now_ms=NOW)

    for log, before in steps(tmp_path, cut_and_go_on):
        found = everything(log)
        if log.epochs.latest() == 5:
            kept = b"".join(
                found[position : position + header.size_bytes]
                for position, header in iter_headers(found)
                if header.leader_epoch < 5
            )
            assert before.startswith(kept)
            assert found.startswith(kept)
        else:
            must_be_a_part_of(log, before, tmp_path)


CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "cleaner-offset-checkpoint")


def checkpointed(path: Path) -> tuple[DataDirectory, Log]:
    """Create a log of two batches, of nine records and of one, with complete checkpoints."""
    directory = DataDirectory.open(path, node_id=1)
    log = directory.open_log(FLIGHTS, LogConfig(), now_ms=NOW, replicated=True)
    append(log, *[b"x"] * 9)
    append(log, b"y")
    log.advance_high_watermark(10)
    log.flush()
    directory.checkpoint()
    writing = directory.prepare_high_watermarks()
    assert writing is not None
    writing()
    directory.record_cleaned(FLIGHTS, 10)()
    return directory, log


def test_a_truncation_lowers_the_checkpoints_first(tmp_path: Path) -> None:
    directory, log = checkpointed(tmp_path)
    log.truncate_to(9, now_ms=NOW)
    for name in CHECKPOINTS:
        assert (tmp_path / name).read_text() == "0\n1\nflights 0 9\n"
    directory.close(clean=False)


@pytest.mark.parametrize("broken", CHECKPOINTS)
def test_a_retried_truncation_lowers_the_checkpoints_that_could_not_be_written(tmp_path: Path, broken: str) -> None:
    directory, log = checkpointed(tmp_path)

    def replace_file(path: Path, text: str, *, sync: bool = True) -> None:
        if path.name == broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        durable.replace_file(path, text, sync=sync)

    with mock.patch.object(checkpoint, "replace_file", replace_file), pytest.raises(KafkaError, match="cannot write"):
        log.truncate_to(9, now_ms=NOW)
    assert log.truncate_to(9, now_ms=NOW) == 9
    for name in CHECKPOINTS:
        assert (tmp_path / name).read_text() == "0\n1\nflights 0 9\n"
    directory.close(clean=False)


def test_readers_of_a_truncated_slice_get_it_or_an_end(tmp_path: Path) -> None:
    log = eventful(open_log(tmp_path / "t-0", SMALL, committed=0))
    piece = log.read(log.bases[1], 1 << 20)
    assert piece is not None
    log.truncate_to(1, now_ms=NOW)
    assert len(os.pread(piece.file.fileno(), piece.size, piece.position)) == piece.size
    assert bytes_of(log, 0) == b""


def torn(path: Path, *, keep: int) -> Log:
    """A copy after a loss of power that took the end of its first segment, but for some bytes, and left the second."""
    log = open_log(path / "t-0", LogConfig(segment_bytes=200), committed=0)
    leader = open_log(path / "leader" / "t-0")
    for number in range(6):
        append(leader, b"%d" % number, timestamps=[NOW])
    log.append_as_is(everything(leader), leader_epoch=0, now_ms=NOW)
    assert len(log.segments) > 1
    first = log.segments[0].path
    log.release()
    os.truncate(first, keep)
    return open_log(path / "t-0", log.config, committed=0)


@pytest.mark.parametrize(("keep", "end"), [(69, 1), (100, 1), (0, 0)])
def test_a_replica_is_truncated_at_a_torn_position_before_intact_batches(tmp_path: Path, keep: int, end: int) -> None:
    log = torn(tmp_path, keep=keep)
    assert (log.torn_at, log.end_offset) == (end, 6)
    assert log.truncate_torn(now_ms=NOW) == end
    assert (log.torn_at, log.end_offset) == (None, end)
    assert [header.base_offset for _, header in iter_headers(everything(log))] == list(range(end))


def test_a_torn_log_is_flushed_once(tmp_path: Path) -> None:
    log = torn(tmp_path, keep=69)
    assert log.is_awaiting_flush
    log.flush()
    assert (log.is_awaiting_flush, log.recovery_point) == (False, 1)


def test_a_log_reset_after_its_torn_position_is_no_longer_torn(tmp_path: Path) -> None:
    log = torn(tmp_path, keep=69)
    log.truncate_fully_and_start_at(100, now_ms=NOW)
    assert (log.torn_at, log.recovery_point, log.truncate_torn(now_ms=NOW)) == (None, 100, 100)


@pytest.mark.parametrize("clean", [False, True])
def test_a_torn_position_is_kept_if_the_broker_stops_before_it_follows(tmp_path: Path, clean: bool) -> None:
    log = torn(tmp_path, keep=69)
    log.close()
    assert log.recovery_point == 1
    log = open_log(tmp_path / "t-0", log.config, committed=0, clean=clean, recovery_point=log.recovery_point)
    assert (log.torn_at, log.end_offset) == (1, 6)
    assert log.truncate_torn(now_ms=NOW) == 1
    log.close()
    assert (
        log.recovery_point
        == 1
        == open_log(tmp_path / "t-0", log.config, committed=0, clean=True, recovery_point=1).end_offset
    )


def test_an_intact_replica_is_not_truncated(tmp_path: Path) -> None:
    log = eventful(open_log(tmp_path / "t-0", SMALL, committed=0))
    log.release()
    log = open_log(tmp_path / "t-0", SMALL, committed=0)
    assert log.truncate_torn(now_ms=NOW) == log.end_offset
