"""A copy of the controllers' log, and what is committed of it as state."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import UUID

import pytest

from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.broker.metadata.observed_snapshots import SnapshotRules
from ottla.clock import ManualClock
from ottla.coordination.cluster.events import TokenDeletionRequested
from ottla.coordination.cluster.records import TopicRecord, encode_record
from ottla.coordination.quorum.observer import Append, ReplicaEnd, TruncateToEnd, WriteChunk
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import INT32_MAX
from ottla.protocol.schema import Message
from ottla.records.batch import BatchHeader, parse_header
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.state_log.snapshot import SnapshotId, find_snapshots, read_state, read_time, write_state
from ottla.storage.state_log.voter import SoleVoter
from tests.coordination import recorded

pytestmark = pytest.mark.heavy

CONFIG = LogConfig(max_message_bytes=INT32_MAX, segment_bytes=INT32_MAX, retention_ms=-1)
EPOCH = 1
BATCHES = recorded.batches()
WHOLE = parse_header(BATCHES[-1]).next_offset


def observed(folder: Path) -> ObservedMetadata:
    return ObservedMetadata(Log.open(folder, CONFIG, now_ms=0, clean=True), ManualClock())


def append(metadata: ObservedMetadata, batches: list[bytes], high_watermark: int) -> int:
    """Return the number of applied records."""
    applied = metadata.keep(Append(memoryview(b"".join(batches)), EPOCH, high_watermark))
    assert applied is not None
    return len(applied)


def test_only_committed_records_are_applied(tmp_path: Path) -> None:
    metadata = observed(tmp_path)
    half = parse_header(BATCHES[len(BATCHES) // 2]).base_offset
    assert append(metadata, BATCHES, half) > 0
    assert (metadata.applied, metadata.end.offset) == (half, WHOLE)
    assert "on-ours" not in metadata.machine.topics
    append(metadata, [], WHOLE)
    assert metadata.applied == WHOLE
    assert "on-ours" in metadata.machine.topics


def test_the_copy_has_the_fetched_bytes(tmp_path: Path) -> None:
    append(observed(tmp_path), BATCHES, 0)
    assert (tmp_path / f"{0:020d}.log").read_bytes() == recorded.LOG


def test_after_a_start_nothing_is_applied_before_a_leader_confirms_it(tmp_path: Path) -> None:
    first = observed(tmp_path)
    append(first, BATCHES, WHOLE)
    first.log.close()
    metadata = observed(tmp_path)
    assert (metadata.applied, metadata.end, dict(metadata.machine.topics)) == (0, ReplicaEnd(WHOLE, EPOCH), {})
    append(metadata, [], WHOLE)
    assert "on-ours" in metadata.machine.topics


def test_a_diverging_log_is_truncated_and_the_committed_state_stays(tmp_path: Path) -> None:
    metadata = observed(tmp_path)
    half = parse_header(BATCHES[len(BATCHES) // 2]).base_offset
    append(metadata, BATCHES, half)
    features = dict(metadata.machine.features)
    metadata.keep(TruncateToEnd(EPOCH, half))
    assert (metadata.end.offset, metadata.applied, metadata.machine.features) == (half, half, features)
    with pytest.raises(CorruptRecordError, match="one of them has lost records"):
        metadata.keep(TruncateToEnd(EPOCH, half - 50))
    append(metadata, BATCHES[len(BATCHES) // 2 :], WHOLE)
    assert "on-ours" in metadata.machine.topics


def test_batches_that_do_not_continue_the_log_are_rejected(tmp_path: Path) -> None:
    metadata = observed(tmp_path)
    damaged = bytearray(BATCHES[0])
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        append(metadata, [bytes(damaged)], 0)
    assert metadata.end.offset == 0


def test_a_snapshot_replaces_the_log_before_it(tmp_path: Path) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    snapshot = SnapshotId(500, EPOCH)
    topic, voter = TopicRecord("in-it", UUID(int=9)), SoleVoter(1, UUID(int=1))
    write_state(elsewhere, snapshot, [encode_record(topic)], 0, voter, sync=False)
    data = (elsewhere / snapshot.file_name).read_bytes()
    metadata = observed(tmp_path / "copy")
    append(metadata, BATCHES[:3], 0)

    metadata.keep(WriteChunk(500, EPOCH, 0, memoryview(data[:100]), last=False))
    assert metadata.end.offset < 500
    assert metadata.keep(WriteChunk(500, EPOCH, 100, memoryview(data[100:]), last=True)) is None

    assert (metadata.end, metadata.applied) == (ReplicaEnd(500, EPOCH, committed=500), 500)
    assert list(metadata.machine.topics) == ["in-it"]
    metadata.log.close()
    assert list(observed(tmp_path / "copy").machine.topics) == ["in-it"]


def test_an_incomplete_snapshot_is_not_used(tmp_path: Path) -> None:
    metadata = observed(tmp_path)
    metadata.keep(WriteChunk(500, EPOCH, 0, memoryview(b"x" * 100), last=True))
    assert (metadata.end.offset, metadata.applied) == (0, 0)


def test_an_observer_decides_nothing(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="only the controllers") as refusal:
        observed(tmp_path).submit(lambda ticket: TokenDeletionRequested(ticket, ()))
    assert refusal.value.code == ErrorCode.NOT_CONTROLLER


def rules(**changed: int) -> SnapshotRules:
    return SnapshotRules(**{"max_bytes": 1000, "max_interval_ms": 0, **changed})


def with_snapshots(folder: Path, clock: ManualClock | None = None, **changed: int) -> ObservedMetadata:
    log = Log.open(folder, CONFIG, now_ms=0, clean=True)
    return ObservedMetadata(log, clock or ManualClock(), rules(**changed))


def fed(metadata: ObservedMetadata) -> ObservedMetadata:
    """Return an observer that received the whole log, batch by batch."""
    for batch in BATCHES:
        append(metadata, [batch], parse_header(batch).next_offset)
    return metadata


def test_a_start_loads_the_newest_snapshot_and_then_the_end_of_the_log(tmp_path: Path) -> None:
    before = fed(with_snapshots(tmp_path))
    newest = find_snapshots(tmp_path)[0]
    assert 0 < newest.offset < WHOLE
    before.log.close()
    metadata = with_snapshots(tmp_path)
    assert (metadata.applied, metadata.end.offset) == (newest.offset, WHOLE)
    append(metadata, [], WHOLE)
    assert list(metadata.machine.records()) == list(before.machine.records())


def test_a_snapshot_has_the_voters_and_the_time_of_its_last_record(tmp_path: Path) -> None:
    fed(with_snapshots(tmp_path))
    newest = find_snapshots(tmp_path)[0]
    state = read_state(tmp_path, newest)
    last = next(header for header in map(parse_header, BATCHES) if header.next_offset == newest.offset)
    assert (state.time_ms, newest.epoch) == (last.max_timestamp, last.leader_epoch)
    assert state.has_voters
    assert read_time(tmp_path, newest) == state.time_ms


def test_snapshots_and_segments_above_the_retention_size_are_deleted_except_for_the_newest_snapshot(
    tmp_path: Path,
) -> None:
    metadata = fed(with_snapshots(tmp_path, retention_bytes=0))
    (kept,) = find_snapshots(tmp_path)
    assert metadata.log.start_offset == kept.offset
    assert all(base >= kept.offset for base in metadata.log.bases)


def test_snapshots_and_segments_within_the_retention_limits_are_kept(tmp_path: Path) -> None:
    metadata = fed(with_snapshots(tmp_path))
    assert len(find_snapshots(tmp_path)) > 1
    assert metadata.log.start_offset == 0


def test_snapshots_older_than_the_retention_time_are_deleted(tmp_path: Path) -> None:
    clock = ManualClock(wall_ms=parse_header(BATCHES[-1]).max_timestamp + 10_000)
    fed(with_snapshots(tmp_path, clock, retention_ms=1))
    assert len(find_snapshots(tmp_path)) == 1


def test_a_snapshot_is_written_after_its_maximum_interval(tmp_path: Path) -> None:
    clock = ManualClock()
    metadata = with_snapshots(tmp_path, clock, max_bytes=1 << 30, max_interval_ms=60_000)
    append(metadata, BATCHES[:-1], parse_header(BATCHES[-2]).next_offset)
    assert not find_snapshots(tmp_path)
    clock.advance(60)
    append(metadata, BATCHES[-1:], WHOLE)
    assert find_snapshots(tmp_path) == [SnapshotId(WHOLE, parse_header(BATCHES[-1]).leader_epoch)]


def test_a_snapshot_has_the_state_of_the_time_at_which_it_was_due(tmp_path: Path) -> None:
    under_way: list[Callable[[], None]] = []
    log = Log.open(tmp_path, CONFIG, now_ms=0, clean=True)
    submit = lambda work, done: under_way.append(work)  # noqa: E731
    metadata = ObservedMetadata(log, ManualClock(), rules(max_bytes=1 << 30, max_interval_ms=60_000), submit)
    metadata.snapshots._since = -60.0
    half = len(BATCHES) // 2
    append(metadata, BATCHES[:half], parse_header(BATCHES[half]).base_offset)
    then = list(map(encode_record, metadata.machine.records()))
    append(metadata, BATCHES[half:], WHOLE)
    under_way[0]()
    assert read_state(tmp_path, find_snapshots(tmp_path)[0]).values == then
    assert list(map(encode_record, metadata.machine.records())) != then


def test_many_committed_records_are_applied_in_several_turns(tmp_path: Path) -> None:
    clock = ManualClock()
    metadata = with_snapshots(tmp_path, clock)
    monkey = metadata._replayed

    def slowly(batch: bytes, header: BatchHeader) -> list[Message]:
        clock.advance(0.03)
        return monkey(batch, header)

    metadata._replayed = slowly  # type: ignore[method-assign]
    append(metadata, BATCHES, WHOLE)
    turns = 0
    while metadata.unfinished:
        metadata.apply_more()
        turns += 1
    assert metadata.applied == WHOLE
    assert turns >= len(BATCHES) // 2 - 1


def with_few(folder: Path) -> ObservedMetadata:
    return with_snapshots(folder, max_bytes=20_000, retention_bytes=0)


def test_a_kill_at_any_call_of_a_snapshot_restores_the_same_state(tmp_path: Path) -> None:
    whole = list(map(encode_record, fed(with_few(tmp_path / "whole")).machine.records()))
    for number in range(1, 10_000):
        folder = tmp_path / str(number)
        if not killed(folder, number):
            break
        metadata = with_few(folder)
        assert metadata.applied <= metadata.end.offset
        rest = [each for each in BATCHES if parse_header(each).base_offset >= metadata.end.offset]
        append(metadata, rest, WHOLE)
        assert list(map(encode_record, metadata.machine.records())) == whole
        metadata.log.close()
    assert number > 10


class Killed(BaseException):
    """The process is no more."""


def killed(folder: Path, after: int) -> bool:
    """True if this system call happened during the log; it and all later ones had no effect."""
    left = [after]

    def before(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] <= 0:
                raise Killed
            return real(*arguments, **more)

        return call

    metadata = with_few(folder)
    with ExitStack() as stack:
        for name in ("fsync", "replace", "unlink", "ftruncate"):
            stack.enter_context(mock.patch.object(os, name, before(getattr(os, name))))
        with suppress(Killed):
            fed(metadata)
            return False
    return True
