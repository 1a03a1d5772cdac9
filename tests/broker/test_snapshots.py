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

from ottla.broker.embedded import Broker
from ottla.broker.machines import snapshots
from ottla.coordination.cluster.features import AT_FIRST
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
from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_entry import Origin
from ottla.storage.state_log import snapshot as state_snapshot
from ottla.storage.state_log.snapshot import EMPTY, SnapshotId, State, find_snapshots, read_state, write_state
from ottla.storage.state_log.voter import Voter
from tests.broker.wire import Wire

VOTER = Voter(1, uuid.UUID(int=9))
OFTEN = 2_000
"""Bytes between snapshots: a few topics."""


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is what crashes here, not the machine: what is written need not be on the disk."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def folder(data: Path) -> Path:
    return data / "__cluster_metadata-0"


def state_of(data: Path) -> ClusterMetadata:
    """What the newest snapshot holds."""
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


def test_a_start_reads_the_newest_snapshot_and_what_came_after(tmp_path: Path) -> None:
    expected = busy(tmp_path, 60)
    found = find_snapshots(folder(tmp_path))
    assert len(found) == 2
    assert min(int(log.stem) for log in folder(tmp_path).glob("*.log")) == found[1].offset > 0
    assert names(tmp_path) == sorted(expected)


def test_ids_configs_features_and_producer_ids_are_in_a_snapshot(tmp_path: Path) -> None:
    busy(tmp_path, 30)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        topic = wire.metadata("t1").topics[0]
    machine = state_of(tmp_path)
    assert machine.topics["t1"].topic_id == topic.topic_id
    assert machine.topics["t1"].configs == {"retention.ms": "1001"}
    assert machine.features == dict(AT_FIRST)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:200] + b"x" + data[201:]]
)
def test_a_broken_snapshot_costs_a_longer_read(
    tmp_path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    expected = busy(tmp_path, 60)
    newest = folder(tmp_path) / find_snapshots(folder(tmp_path))[0].file_name
    newest.write_bytes(damage(newest.read_bytes()))
    assert names(tmp_path) == sorted(expected)
    assert f"{newest} is not whole: " in caplog.text
    assert "; the snapshot before it is read, and more of the log" in caplog.text


def test_of_a_broken_snapshot_before_which_there_is_none_nothing_else_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log.open(tmp_path / "__cluster_metadata-0", LogConfig(), now_ms=0)
    (log.directory / SnapshotId(0, 0).file_name).write_bytes(b"torn")
    snapshots.Snapshots(1, VOTER, durable=False).load(log, 0)
    assert "; the log is read from its beginning" in caplog.text
    assert "the snapshot before it" not in caplog.text


def test_without_a_whole_snapshot_and_the_whole_log_the_start_says_so(tmp_path: Path) -> None:
    busy(tmp_path, 60)
    for snapshot in find_snapshots(folder(tmp_path)):
        (folder(tmp_path) / snapshot.file_name).write_bytes(b"")
    with pytest.raises(OttlaError, match=r"is in no whole snapshot \(.*checkpoint.*\): restore a backup"):
        names(tmp_path)


def test_a_log_that_lost_its_end_goes_on_behind_the_snapshot(tmp_path: Path) -> None:
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
    (state_snapshot, "batches"),
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
    write = snapshots.Snapshots.write

    def watched(*args: Any, **more: Any) -> None:
        writing.append(True)
        write(*args, **more)
        writing.clear()

    def copied(*args: Any, **more: Any) -> Any:
        first = writing and not crashed.exists()
        if first and moment == "before":
            shutil.copytree(data, crashed)
        result = original(*args, **more)
        if first and moment == "after":
            shutil.copytree(data, crashed)
        return result

    monkeypatch.setattr(snapshots.Snapshots, "write", watched)
    monkeypatch.setattr(place, step, copied)
    busy(data, 10, first=40)
    monkeypatch.setattr(place, step, original)
    (crashed / ".kafka_cleanshutdown").unlink(missing_ok=True)
    found = names(crashed)
    everything = names(data)
    assert set(found) <= set(everything)
    assert len(found) >= 26
    assert set(busy(crashed, 30, first=100)) <= set(names(crashed))


def test_a_disk_that_takes_no_snapshot_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshots, "write_state", full)
    expected = busy(tmp_path, 30)
    assert find_snapshots(folder(tmp_path)) == []
    assert names(tmp_path) == sorted(expected)


FAILING: list[tuple[Any, str]] = [
    (os, "replace"),
    (Log, "roll"),
    (Log, "retain"),
    (snapshots, "find_snapshots"),
    (LeaderEpochs, "latest"),
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
def test_a_step_of_a_snapshot_that_fails_is_one_sentence_and_is_tried_again(
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
    assert len(errors) == len(tried) > 1
    assert not any(record.exc_info for record in caplog.records)
    for record in errors:
        assert f"in {folder(tmp_path)}" in record.getMessage()
        assert str(failure) in record.getMessage()
    assert not list(folder(tmp_path).glob("*.part"))
    more = busy(tmp_path, 30, first=100)
    assert len(find_snapshots(folder(tmp_path))) == 2
    assert names(tmp_path) == sorted(expected + more)


def fail_within_writes(patch: pytest.MonkeyPatch, place: Any, step: str, failure: Exception, tried: list[int]) -> None:
    """Let a step raise while a snapshot is written, and only then."""
    write, original = snapshots.Snapshots.write, getattr(place, step)
    writing: list[bool] = []

    def watched(*args: Any) -> None:
        tried.append(len(tried))
        writing.append(True)
        write(*args)
        writing.clear()

    def failing(*args: Any, **more: Any) -> Any:
        if writing:
            raise failure
        return original(*args, **more)

    patch.setattr(snapshots.Snapshots, "write", watched)
    patch.setattr(place, step, failing)


def test_a_folder_in_the_place_of_a_snapshot_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocked: list[Path] = []
    write = snapshots.Snapshots.write

    def with_a_folder(self: snapshots.Snapshots, log: Log, *args: Any) -> None:
        if not blocked:
            blocked.append(log.directory / SnapshotId(log.end_offset, 0).file_name)
            (blocked[0] / "of-somebody").mkdir(parents=True)
        write(self, log, *args)

    monkeypatch.setattr(snapshots.Snapshots, "write", with_a_folder)
    expected = busy(tmp_path, 60)
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert str(blocked[0]) in record.getMessage()
    assert not record.exc_info
    assert len(find_snapshots(folder(tmp_path))) >= 2, "the next ones were written"
    assert names(tmp_path) == sorted(expected)


def test_topics_that_came_and_went_are_not_read_at_a_start(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        for number in range(30):
            for _ in range(2):
                wire.create("t", partitions=100)
                wire.ask(DeleteTopicsRequest([DeleteTopicState("t")]))
            wire.create(f"t{number}")
    sizes = [file.stat().st_size for file in folder(tmp_path).glob("*.log")]
    assert sum(sizes) <= 3 * snapshots.SMALL_BYTES
    assert len(names(tmp_path)) == 30


def test_a_file_without_its_footer_is_not_whole(tmp_path: Path) -> None:
    snapshot = SnapshotId(7, 0)
    write_state(tmp_path, snapshot, [b"a", b"b"], 1000, VOTER, sync=False)
    state = read_state(tmp_path, snapshot)
    assert state == State([b"a", b"b"], 1000, state.quorum)
    assert state.has_voters
    path = tmp_path / snapshot.file_name
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptRecordError):
            read_state(tmp_path, snapshot)


def test_a_draft_that_a_crash_left_is_removed(tmp_path: Path) -> None:
    draft = tmp_path / "00000000000000000007-0000000000.checkpoint.part"
    draft.write_bytes(b"half")
    assert find_snapshots(tmp_path) == []
    assert not draft.exists()


def voters_in(data: Path, snapshot: SnapshotId) -> VotersRecord:
    """What a snapshot says of the voters, as an implementation reads it that is not ours."""
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


def test_a_new_directory_says_that_this_node_is_the_one_voter(tmp_path: Path) -> None:
    with Broker(tmp_path, node_id=7):
        pass
    found = find_snapshots(folder(tmp_path))
    assert found == [EMPTY]
    (voter,) = voters_in(tmp_path, EMPTY).voters
    assert voter.voter_id == 7
    assert voter.voter_directory_id is not None
    assert text_of(voter.voter_directory_id) in (tmp_path / "meta.properties").read_text()
    assert voter.k_raft_version_feature.max_supported_version == 1


def test_every_snapshot_says_who_the_voter_is(tmp_path: Path) -> None:
    busy(tmp_path, 60)
    for snapshot in find_snapshots(folder(tmp_path)):
        assert [voter.voter_id for voter in voters_in(tmp_path, snapshot).voters] == [1]


def test_a_directory_without_voters_gains_them_and_keeps_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        # As it was written before there were voters: a header alone, and nothing at the log's beginning.
        before.setattr(Voter, "voters_record", lambda voter: b"")
        control = state_snapshot.control_batch
        before.setattr(state_snapshot, "control_batch", lambda records, now_ms: control(records[:1], now_ms))
        expected = busy(tmp_path, 60)
        newest = find_snapshots(folder(tmp_path))[0]
        assert not read_state(folder(tmp_path), newest).has_voters
    assert names(tmp_path) == sorted(expected)
    assert read_state(folder(tmp_path), newest).has_voters
    assert names(tmp_path) == sorted(expected)


def test_a_small_directory_without_voters_gains_them(tmp_path: Path) -> None:
    expected = busy(tmp_path, 5)
    for old in find_snapshots(folder(tmp_path)):
        if old.offset:
            pytest.fail("five topics are too few for a snapshot")
        (folder(tmp_path) / old.file_name).unlink()
    assert names(tmp_path) == sorted(expected)
    assert find_snapshots(folder(tmp_path)) == [EMPTY]


def test_a_disk_that_takes_no_voters_keeps_no_broker_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = busy(tmp_path, 5)
    (folder(tmp_path) / EMPTY.file_name).unlink()

    def full(*arguments: Any, **more: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshots, "write_state", full)
    assert names(tmp_path) == sorted(expected)
    assert "who keeps the metadata: [Errno 28] No space left on device" in caplog.text


def test_what_kafka_alone_acts_on_survives_our_snapshots(tmp_path: Path) -> None:
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
    assert newest.epoch == 3
    assert read_state(folder(tmp_path), newest).values.count(quota) == 1
