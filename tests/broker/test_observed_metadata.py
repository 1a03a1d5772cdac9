"""A copy of the controllers' log, and what is committed of it as state."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.machines.observed_metadata import ObservedMetadata
from ottla.clock import ManualClock
from ottla.coordination.cluster.events import ClusterBegun
from ottla.coordination.cluster.records import TopicRecord, encode_record
from ottla.coordination.quorum.observer import Append, Cut, KeepPiece, LogEnd
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.model import INT32_MAX
from ottla.records.batch import parse_header
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.state_log.snapshot import SnapshotId, write_state
from ottla.storage.state_log.voter import Voter
from tests.coordination import recorded

CONFIG = LogConfig(max_message_bytes=INT32_MAX, segment_bytes=INT32_MAX, retention_ms=-1)
EPOCH = 1
BATCHES = recorded.batches()
WHOLE = parse_header(BATCHES[-1]).next_offset


def observed(folder: Path) -> ObservedMetadata:
    return ObservedMetadata(Log.open(folder, CONFIG, now_ms=0, clean=True), ManualClock())


def append(metadata: ObservedMetadata, batches: list[bytes], high_watermark: int) -> int:
    """How many records became state."""
    return len(metadata.keep(Append(memoryview(b"".join(batches)), EPOCH, high_watermark)))


def test_what_is_committed_becomes_state_and_nothing_above_it(tmp_path: Path) -> None:
    metadata = observed(tmp_path)
    half = parse_header(BATCHES[len(BATCHES) // 2]).base_offset
    assert append(metadata, BATCHES, half) > 0
    assert (metadata.applied, metadata.end.offset) == (half, WHOLE)
    assert "on-ours" not in metadata.machine.topics
    append(metadata, [], WHOLE)
    assert metadata.applied == WHOLE
    assert "on-ours" in metadata.machine.topics


def test_the_copy_is_byte_for_byte_what_came(tmp_path: Path) -> None:
    append(observed(tmp_path), BATCHES, 0)
    assert (tmp_path / f"{0:020d}.log").read_bytes() == recorded.LOG


def test_after_a_start_nothing_counts_before_a_leader_says_so(tmp_path: Path) -> None:
    first = observed(tmp_path)
    append(first, BATCHES, WHOLE)
    first.log.close()
    metadata = observed(tmp_path)
    assert (metadata.applied, metadata.end, dict(metadata.machine.topics)) == (0, LogEnd(WHOLE, EPOCH), {})
    append(metadata, [], WHOLE)
    assert "on-ours" in metadata.machine.topics


def test_a_log_that_parts_from_the_leaders_is_cut_and_what_counts_stays(tmp_path: Path) -> None:
    metadata = observed(tmp_path)
    half = parse_header(BATCHES[len(BATCHES) // 2]).base_offset
    append(metadata, BATCHES, half)
    features = dict(metadata.machine.features)
    metadata.keep(Cut(EPOCH, half))
    assert (metadata.end.offset, metadata.applied, metadata.machine.features) == (half, half, features)
    with pytest.raises(CorruptRecordError, match="one of them lost what it had"):
        metadata.keep(Cut(EPOCH, half - 50))
    append(metadata, BATCHES[len(BATCHES) // 2 :], WHOLE)
    assert "on-ours" in metadata.machine.topics


def test_what_does_not_go_on_with_the_copy_is_refused(tmp_path: Path) -> None:
    metadata = observed(tmp_path)
    damaged = bytearray(BATCHES[0])
    damaged[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        append(metadata, [bytes(damaged)], 0)
    assert metadata.end.offset == 0


def test_a_snapshot_stands_for_what_it_holds(tmp_path: Path) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    snapshot = SnapshotId(500, EPOCH)
    topic, voter = TopicRecord("in-it", UUID(int=9)), Voter(1, UUID(int=1))
    write_state(elsewhere, snapshot, [encode_record(topic)], 0, voter, sync=False)
    data = (elsewhere / snapshot.file_name).read_bytes()
    metadata = observed(tmp_path / "copy")
    append(metadata, BATCHES[:3], 0)

    metadata.keep(KeepPiece(500, EPOCH, 0, memoryview(data[:100]), last=False))
    assert metadata.end.offset < 500
    metadata.keep(KeepPiece(500, EPOCH, 100, memoryview(data[100:]), last=True))

    assert (metadata.end, metadata.applied) == (LogEnd(500, EPOCH), 500)
    assert list(metadata.machine.topics) == ["in-it"]
    metadata.log.close()
    assert list(observed(tmp_path / "copy").machine.topics) == ["in-it"]


def test_a_snapshot_that_is_not_whole_is_not_believed(tmp_path: Path) -> None:
    metadata = observed(tmp_path)
    metadata.keep(KeepPiece(500, EPOCH, 0, memoryview(b"x" * 100), last=True))
    assert (metadata.end.offset, metadata.applied) == (0, 0)


def test_nothing_is_decided_here(tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match="only the controllers") as refusal:
        observed(tmp_path).ask(ClusterBegun)
    assert refusal.value.code == ErrorCode.NOT_CONTROLLER
