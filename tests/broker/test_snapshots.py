"""Snapshots of the metadata: what a start reads, and what a crash or damage between any two steps costs."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kio.schema.k_raft_version_record.v0.data import KRaftVersionRecord
from kio.schema.voters_record.v0.data import VotersRecord
from kio.serial import entity_reader

from ottla.broker.controller.controller_snapshots import CommittedMetadata
from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.metadata import observed_snapshots
from ottla.broker.metadata.observed_snapshots import SMALL_BYTES, ObservedSnapshots
from ottla.clock import ManualClock
from ottla.coordination.cluster.features import INITIAL_CLUSTER_LEVELS
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import decode_record
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError, OttlaError
from ottla.kafka_id import text_of
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.records.batch import HEADER_BYTES, iter_headers
from ottla.records.builder import BatchBuilder
from ottla.records.control import control_pairs
from ottla.storage.directory.offset_checkpoints import RECOVERY_POINTS
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import Origin
from ottla.storage.state_log import snapshot as state_snapshot
from ottla.storage.state_log.snapshot import EMPTY, SnapshotId, SnapshotState, find_snapshots, read_state, write_state
from ottla.storage.state_log.voter import SoleVoter
from tests.broker.wire import Wire

VOTER = SoleVoter(1, uuid.UUID(int=9))
OFTEN = 2_000
"""Bytes between snapshots: a few topics."""


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is what crashes here, not the machine: what is written need not be on the disk."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def folder(data: Path) -> Path:
    return data / "__cluster_metadata-0"


def state_of(data: Path) -> ClusterMetadata:
    """Return the records of the newest snapshot."""
    machine = ClusterMetadata()
    for value in read_state(folder(data), find_snapshots(folder(data))[0]).values:
        record = decode_record(value)
        assert record is not None
        machine.replay(record)
    machine.check()
    return machine


def names(data: Path) -> list[str]:
    """The topics that a broker finds there, each with its partitions and retention."""
    with Broker(data) as broker, Wire(broker.bootstrap_servers) as wire:
        topics = wire.ask(MetadataRequest(None)).topics
        return sorted(f"{topic.name} {len(topic.partitions)}" for topic in topics)


def busy(data: Path, count: int, *, first: int = 0) -> list[str]:
    """Make topics, delete every third, change configs; returns those that are there."""
    often = Broker(data, metadata_log_max_record_bytes_between_snapshots=OFTEN)
    with often as broker, Wire(broker.bootstrap_servers) as wire:
        for number in range(first, first + count):
            wire.create(f"t{number}", partitions=1 + number % 3)
            if number % 3 == 0:
                wire.ask(DeleteTopicsRequest([DeleteTopicState(f"t{number}")]))
            else:
                change = [AlterableConfig("retention.ms", 0, str(1000 + number))]
                wire.ask(IncrementalAlterConfigsRequest([AlterConfigsResource(2, f"t{number}", change)]))
    return [f"t{number} {1 + number % 3}" for number in range(first, first + count) if number % 3]


def test_a_start_loads_the_newest_snapshot_and_the_records_after_it(tmp_path: Path) -> None:
    expected = busy(tmp_path, 60)
    found = find_snapshots(folder(tmp_path))
    assert len(found) == 2
    assert 0 < min(int(log.stem) for log in folder(tmp_path).glob("*.log")) <= found[1].offset
    assert names(tmp_path) == sorted(expected)


def test_ids_configs_features_and_producer_ids_are_in_a_snapshot(tmp_path: Path) -> None:
    busy(tmp_path, 30)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        topic = wire.metadata("t1").topics[0]
    machine = state_of(tmp_path)
    assert machine.topics["t1"].topic_id == topic.topic_id
    assert machine.topics["t1"].configs == {"retention.ms": "1001"}
    assert machine.features == dict(INITIAL_CLUSTER_LEVELS)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:200] + b"x" + data[201:]]
)
def test_a_damaged_snapshot_requires_a_longer_read(
    tmp_path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    expected = busy(tmp_path, 60)
    newest = folder(tmp_path) / find_snapshots(folder(tmp_path))[0].file_name
    newest.write_bytes(damage(newest.read_bytes()))
    assert names(tmp_path) == sorted(expected)
    assert f"{newest} is not whole: " in caplog.text
    assert "; the previous snapshot and more of the log are read" in caplog.text


def test_a_damaged_first_snapshot_is_reported_in_one_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = Log.open(tmp_path / "__cluster_metadata-0", LogConfig(), now_ms=0)
    (log.directory / SnapshotId(0, 0).file_name).write_bytes(b"torn")
    CommittedMetadata(log, ManualClock())
    assert "; the log is read from its start" in caplog.text
    assert "the snapshot before it" not in caplog.text


def test_without_a_valid_snapshot_and_the_whole_log_the_start_fails(tmp_path: Path) -> None:
    busy(tmp_path, 60)
    for snapshot in find_snapshots(folder(tmp_path)):
        (folder(tmp_path) / snapshot.file_name).write_bytes(b"")
    with pytest.raises(
        OttlaError, match=r"no complete snapshot has the earlier records \(.*checkpoint.*\): restore a backup"
    ):
        names(tmp_path)


def test_a_log_that_lost_its_end_continues_after_the_snapshot(tmp_path: Path) -> None:
    busy(tmp_path, 20)
    state = sorted(f"{topic.name} {len(topic.partitions)}" for topic in state_of(tmp_path).topics.values())
    newest = find_snapshots(folder(tmp_path))[0]
    for file in folder(tmp_path).iterdir():
        if file.suffix in (".log", ".index", ".timeindex"):
            file.unlink()
    (tmp_path / ".kafka_cleanshutdown").unlink(missing_ok=True)
    with pytest.raises(OttlaError, match=r"the file ends before its last records.*ottla log repair"):
        names(tmp_path)  # what came behind the snapshot is known to have been there
    (tmp_path / RECOVERY_POINTS).unlink()
    assert names(tmp_path) == state
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("after")
    assert "after 1" in names(tmp_path)
    assert min(int(log.stem) for log in folder(tmp_path).glob("*.log")) == newest.offset


STEPS: list[tuple[Any, str]] = [
    (state_snapshot, "encode_batches"),
    (os, "replace"),
    (Log, "roll"),
    (Log, "advance_start"),
    (Log, "retain"),
    (Path, "unlink"),
]


@pytest.mark.parametrize(("place", "step"), STEPS, ids=[step for _, step in STEPS])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_before_or_after_any_step_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any, step: str, moment: str
) -> None:
    """The directory is copied at the step, as kill -9 leaves it: what is written is with the system."""
    data, crashed = tmp_path / "data", tmp_path / "crashed"
    busy(data, 40)
    original, writing = getattr(place, step), []
    write, written = ObservedSnapshots.write, ObservedSnapshots._handle_written

    def watched(*args: Any, **more: Any) -> None:
        writing.append(True)
        write(*args, **more)

    def finished(*args: Any, **more: Any) -> None:
        written(*args, **more)
        writing.clear()

    def copied(*args: Any, **more: Any) -> Any:
        first = writing and not crashed.exists()
        if first and moment == "before":
            shutil.copytree(data, crashed)
        result = original(*args, **more)
        if first and moment == "after":
            shutil.copytree(data, crashed)
        return result

    monkeypatch.setattr(ObservedSnapshots, "write", watched)
    monkeypatch.setattr(ObservedSnapshots, "_handle_written", finished)
    monkeypatch.setattr(place, step, copied)
    busy(data, 10, first=40)
    monkeypatch.setattr(place, step, original)
    (crashed / ".kafka_cleanshutdown").unlink(missing_ok=True)
    found = names(crashed)
    everything = names(data)
    deleted_later = {f"t{number} {1 + number % 3}" for number in range(40, 50) if number % 3 == 0}
    assert set(found) <= set(everything) | deleted_later
    assert len(found) >= 26
    assert set(busy(crashed, 30, first=100)) <= set(names(crashed))


def test_a_disk_that_accepts_no_snapshot_does_not_stop_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(observed_snapshots, "write_state", full)
    expected = busy(tmp_path, 30)
    assert find_snapshots(folder(tmp_path)) == [EMPTY]
    assert names(tmp_path) == sorted(expected)


FAILING: list[tuple[Any, str]] = [
    (os, "replace"),
    (Log, "roll"),
    (Log, "retain"),
    (observed_snapshots, "find_snapshots"),
]


@pytest.mark.parametrize(("place", "step"), FAILING, ids=[step for _, step in FAILING])
@pytest.mark.parametrize(
    "failure",
    [
        OSError(28, "No space left on device"),
        KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk refused"),
        CorruptRecordError("the batch has another CRC"),
    ],
    ids=["OSError", "KafkaError", "CorruptRecordError"],
)
def test_a_failed_step_of_a_snapshot_is_logged_once_and_retried(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: Any,
    step: str,
    failure: Exception,
) -> None:
    tried: list[int] = []
    with monkeypatch.context() as patch:
        fail_within_writes(patch, place, step, failure, tried)
        expected = busy(tmp_path, 30)
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(tried) - 1 <= len(errors) <= len(tried)  # the last may end with the broker
    assert len(errors) > 1
    assert not any(record.exc_info for record in caplog.records)
    for record in errors:
        assert f"in {folder(tmp_path)}" in record.getMessage()
        assert str(failure) in record.getMessage()
    assert not list(folder(tmp_path).glob("*.part"))
    more = busy(tmp_path, 30, first=100)
    assert len(find_snapshots(folder(tmp_path))) == 2
    assert names(tmp_path) == sorted(expected + more)


def fail_within_writes(patch: pytest.MonkeyPatch, place: Any, step: str, failure: Exception, tried: list[int]) -> None:
    """Raise an error in a step of a snapshot, and only then."""
    write, written, original = ObservedSnapshots.write, ObservedSnapshots._handle_written, getattr(place, step)
    writing: list[bool] = []

    def watched(*args: Any) -> None:
        tried.append(len(tried))
        writing.append(True)
        write(*args)

    def finished(*args: Any) -> None:
        written(*args)
        writing.clear()

    def failing(*args: Any, **more: Any) -> Any:
        if writing:
            raise failure
        return original(*args, **more)

    patch.setattr(ObservedSnapshots, "write", watched)
    patch.setattr(ObservedSnapshots, "_handle_written", finished)
    patch.setattr(place, step, failing)


def test_a_folder_instead_of_a_snapshot_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocked: list[Path] = []
    write = ObservedSnapshots.write

    def with_a_folder(self: ObservedSnapshots, snapshot: SnapshotId, *args: Any) -> None:
        if not blocked:
            blocked.append(folder(tmp_path) / snapshot.file_name)
            (blocked[0] / "of-somebody").mkdir(parents=True)
        write(self, snapshot, *args)

    monkeypatch.setattr(ObservedSnapshots, "write", with_a_folder)
    expected = busy(tmp_path, 60)
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert str(blocked[0]) in record.getMessage()
    assert not record.exc_info
    assert len(find_snapshots(folder(tmp_path))) >= 2, "the next ones were written"
    assert names(tmp_path) == sorted(expected)


def test_deleted_topics_are_not_read_at_a_start(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        for number in range(30):
            for _ in range(2):
                wire.create("t", partitions=100)
                wire.ask(DeleteTopicsRequest([DeleteTopicState("t")]))
            wire.create(f"t{number}")
    sizes = [file.stat().st_size for file in folder(tmp_path).glob("*.log")]
    assert sum(sizes) <= 3 * SMALL_BYTES
    assert len(names(tmp_path)) == 30


def test_a_file_without_its_footer_is_incomplete(tmp_path: Path) -> None:
    snapshot = SnapshotId(7, 0)
    write_state(tmp_path, snapshot, [b"a", b"b"], 1000, VOTER, sync=False)
    state = read_state(tmp_path, snapshot)
    assert state == SnapshotState([b"a", b"b"], 1000, state.quorum)
    assert state.has_voters
    path = tmp_path / snapshot.file_name
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptRecordError):
            read_state(tmp_path, snapshot)


def test_a_temporary_file_left_by_a_crash_is_removed(tmp_path: Path) -> None:
    draft = tmp_path / "00000000000000000007-0000000000.checkpoint.part"
    draft.write_bytes(b"half")
    assert find_snapshots(tmp_path) == []
    assert not draft.exists()


def voters_in(data: Path, snapshot: SnapshotId) -> VotersRecord:
    """Return the voters in a snapshot, parsed by another implementation."""
    content = (folder(data) / snapshot.file_name).read_bytes()
    _, header = next(iter_headers(content))
    pairs = control_pairs(content[HEADER_BYTES : header.size_bytes], header.count)
    assert [kind for kind, _ in pairs] == [3, 5, 6]
    value = dict(pairs)[6]
    assert value is not None
    found = entity_reader(VotersRecord)(value, 0)[0]
    level = entity_reader(KRaftVersionRecord)(dict(pairs)[5] or b"", 0)[0]
    assert level.k_raft_version == 1
    return found


def test_a_new_directory_has_this_node_as_the_single_voter(tmp_path: Path) -> None:
    with Broker(tmp_path, node_id=7):
        pass
    found = find_snapshots(folder(tmp_path))
    assert found == [EMPTY]
    (voter,) = voters_in(tmp_path, EMPTY).voters
    assert voter.voter_id == 7
    assert voter.voter_directory_id is not None
    assert text_of(voter.voter_directory_id) in (tmp_path / "meta.properties").read_text()
    assert voter.k_raft_version_feature.max_supported_version == 1


def test_every_snapshot_has_the_voter(tmp_path: Path) -> None:
    busy(tmp_path, 60)
    for snapshot in find_snapshots(folder(tmp_path)):
        assert [voter.voter_id for voter in voters_in(tmp_path, snapshot).voters] == [1]


def test_a_directory_without_voters_gets_them_and_keeps_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        # As it was written before there were voters: a header alone, and nothing at the log's beginning.
        before.setattr(SoleVoter, "voters_record", lambda voter: b"")
        control = state_snapshot.control_batch
        before.setattr(state_snapshot, "control_batch", lambda records, now_ms: control(records[:1], now_ms))
        expected = busy(tmp_path, 60)
        newest = find_snapshots(folder(tmp_path))[0]
        assert not read_state(folder(tmp_path), newest).has_voters
    assert names(tmp_path) == sorted(expected)
    expected += busy(tmp_path, 60, first=100)
    assert read_state(folder(tmp_path), find_snapshots(folder(tmp_path))[0]).has_voters
    assert names(tmp_path) == sorted(expected)


def test_a_small_directory_without_voters_gets_them(tmp_path: Path) -> None:
    expected = busy(tmp_path, 2)
    for old in find_snapshots(folder(tmp_path)):
        if old.offset:
            pytest.fail("two topics are too few for a snapshot")
        (folder(tmp_path) / old.file_name).unlink()
    assert names(tmp_path) == sorted(expected)
    assert find_snapshots(folder(tmp_path)) == [EMPTY]


def test_a_failure_to_write_the_voters_does_not_prevent_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = busy(tmp_path, 2)
    (folder(tmp_path) / EMPTY.file_name).unlink()

    def full(*arguments: Any, **more: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state_snapshot, "write_state", full)
    assert names(tmp_path) == sorted(expected)
    assert f"cannot write the voter of the metadata log into {tmp_path}" in caplog.text
    assert "No space left on device" in caplog.text


def test_records_used_by_kafka_only_survive_our_snapshots(tmp_path: Path) -> None:
    quota = b"\x01\x1e\x00" + b"anything that a Kafka understands"
    busy(tmp_path, 2)
    builder = BatchBuilder()
    builder.append(1, None, quota)
    opened = Log.open(folder(tmp_path), LogConfig(), now_ms=1)
    opened.append(builder.build(), leader_epoch=3, now_ms=1, origin=Origin.COORDINATOR)
    opened.close()
    busy(tmp_path, 60, first=2)
    newest = find_snapshots(folder(tmp_path))[0]
    assert newest.offset > 60
    assert newest.epoch > 3
    assert read_state(folder(tmp_path), newest).values.count(quota) == 1
