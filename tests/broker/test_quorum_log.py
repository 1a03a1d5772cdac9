"""The metadata's log of a voter on the disk, held against the one that the quorum was proved with."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.controller.quorum_log import QuorumLog
from ottla.broker.metadata.metadata_log import METADATA_PARTITION
from ottla.broker.metadata.metadata_truncation import cut_level
from ottla.clock import ManualClock
from ottla.coordination.quorum.control_records import (
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    encode_control,
)
from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.state import ElectionState
from ottla.coordination.quorum.voters import ReplicaKey, VoterSet
from ottla.errors import ConfigError, CorruptRecordError, KafkaError
from ottla.records.batch import stamp
from ottla.records.builder import BatchBuilder
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.repair import plan
from ottla.storage.state_log import snapshot
from ottla.storage.state_log.voter import Quorum
from tests.simulation.quorum_log import Entry, Snapshot
from tests.simulation.quorum_log import QuorumLog as SimulatedLog

KEYS = [ReplicaKey(id_, UUID(int=id_)) for id_ in (1, 2, 3)]
VOTERS = VoterSet.of(*KEYS)
SETS = [VoterSet.of(*KEYS[:count]) for count in (1, 2, 3)]


def make_quorum(voters: VoterSet) -> Quorum:
    """Return the quorum state in a snapshot."""
    return Quorum(encode_control(KRaftVersionRecord(0, 1))[1], encode_control(voters.record())[1])


def format_folder(folder: Path, voters: VoterSet = VOTERS) -> None:
    """Have a directory begin with these voters."""
    MetaProperties.read_or_create(folder, 1, None)
    (folder / str(METADATA_PARTITION)).mkdir(parents=True, exist_ok=True)
    snapshot.write_state(folder / str(METADATA_PARTITION), snapshot.EMPTY, [], 0, make_quorum(voters), sync=False)


@contextmanager
def opened(folder: Path, fixed: VoterSet | None = None, *, clean: bool = False) -> Iterator[QuorumLog]:
    directory = DataDirectory.open(folder, node_id=1)
    try:
        yield QuorumLog.open(directory, ManualClock(), *([] if fixed is None else [fixed]))
    finally:
        directory.close(clean=clean)


def metadata_batch(offset: int, epoch: int) -> bytearray:
    """A record that an active controller wrote."""
    builder = BatchBuilder()
    builder.append(0, None, b"what a controller decided")
    batch = bytearray(builder.build())
    stamp(batch, 0, offset, epoch)
    return batch


def snapshot_bytes(folder: Path, end: SnapshotId, voters: VoterSet, values: list[bytes]) -> bytes:
    """A snapshot as a leader has it on its disk."""
    at = snapshot.SnapshotId(*end)
    snapshot.write_state(folder, at, values, 0, make_quorum(voters), sync=False)
    data = (folder / at.file_name).read_bytes()
    (folder / at.file_name).unlink()
    return data


class Both:
    """The same done to both logs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        format_folder(folder)
        self.simulated = SimulatedLog(VOTERS)
        self.epoch = 1
        self.directory = DataDirectory.open(folder, node_id=1)
        self.log = QuorumLog.open(self.directory, ManualClock())

    def reopen(self, *, clean: bool) -> None:
        """The process ends, or is killed, and another one begins."""
        self.directory.close(clean=clean)
        self.directory = DataDirectory.open(self.folder, node_id=1)
        self.log = QuorumLog.open(self.directory, ManualClock())

    def append(self, record: ControlRecord) -> None:
        self.log.append_control(self.epoch, [record])
        self.simulated.append(Entry(self.epoch, record))
        self.simulated.flush()

    def copy(self) -> None:
        """A follower takes what its leader sent."""
        self.log.append(metadata_batch(self.simulated.end, self.epoch), self.epoch)
        self.simulated.append(Entry(self.epoch, None))
        self.simulated.flush()

    def cut(self, part: float) -> None:
        end = self.simulated.start + int(part * (self.simulated.end - self.simulated.start))
        self.log.truncate(end)
        self.simulated.truncate(end)

    def take_over(self, ahead: int, voters: VoterSet) -> None:
        """Fetch a leader's snapshot, which replaces the local log, in two chunks."""
        wanted = SnapshotId(self.simulated.end + ahead, self.epoch)
        data = snapshot_bytes(self.folder, wanted, voters, [b"state"])
        self.log.write_chunk(wanted, 0, data[:50], last=False)
        self.log.write_chunk(wanted, 50, data[50:], last=True)
        self.simulated.begin_at(Snapshot(wanted, (), voters), [])

    def shapes(self) -> tuple[LogShape, LogShape]:
        return self.log.shape()._replace(holds_metadata=False), self.simulated.shape()


ACTS = st.one_of(
    st.tuples(st.just("lead")),
    st.tuples(st.just("copy")),
    st.tuples(st.just("elect"), st.integers(1, 3)),
    st.tuples(st.just("vote"), st.sampled_from(SETS)),
    st.tuples(st.just("cut"), st.floats(0, 1)),
    st.tuples(st.just("take"), st.integers(1, 4), st.sampled_from(SETS)),
    st.tuples(st.just("reopen"), st.booleans()),
)


@given(st.lists(ACTS, max_size=12))
def test_the_log_on_disk_has_the_shape_of_the_simulated_one(acts: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        both = Both(Path(folder))
        for act in acts:
            match act:
                case ("lead",):
                    both.append(LeaderChangeMessage(0, 1))
                case ("copy",):
                    both.copy()
                case ("elect", int(later)):
                    both.epoch += later
                case ("vote", VoterSet() as voters):
                    both.append(voters.record())
                case ("cut", float(part)):
                    both.cut(part)
                case ("take", int(ahead), VoterSet() as voters):
                    both.take_over(ahead, voters)
                case ("reopen", bool(clean)):
                    both.reopen(clean=clean)
            ours, simulated = both.shapes()
            assert ours == simulated, f"after {act}"
        both.directory.close(clean=False)


def test_an_election_state_persists_after_a_kill(tmp_path: Path) -> None:
    format_folder(tmp_path)
    promise = ElectionState(7, None, KEYS[1])
    with opened(tmp_path) as log:
        assert log.read_promises() is None
        log.persist(promise)
    with opened(tmp_path) as log:
        assert log.read_promises() == promise


def test_fixed_voters_apply_without_voters_in_the_log_and_votes_are_identified_by_id(tmp_path: Path) -> None:
    fixed = VoterSet.of(*(ReplicaKey(key.id) for key in KEYS))
    with opened(tmp_path, fixed) as log:
        assert (log.shape().voters, log.shape().kraft_version) == (fixed, 0)
        log.persist(ElectionState(2, 3))
        assert '"data_version":0' in (log.directory / "quorum-state").read_text()
        assert log.read_promises() == ElectionState(2, 3)


def test_a_log_knows_whether_it_has_metadata_records(tmp_path: Path) -> None:
    format_folder(tmp_path)
    with opened(tmp_path) as log:
        log.append_control(1, [LeaderChangeMessage(0, 1)])
        assert not log.shape().holds_metadata
        log.append(metadata_batch(1, 1), 1)
        assert log.shape().holds_metadata
    with opened(tmp_path) as log:
        assert log.shape().holds_metadata


def test_a_batch_written_by_a_leader_is_read_back_unchanged(tmp_path: Path) -> None:
    format_folder(tmp_path)
    with opened(tmp_path) as log:
        log.append_control(3, [LeaderChangeMessage(1, 1), KRaftVersionRecord(0, 1), SETS[1].record()])
        shape = log.shape()
        assert (shape.end, shape.durable, shape.starts, shape.voters_end) == (3, 3, ((3, 0),), 3)
        assert shape.voters == SETS[1]
        other = tmp_path / "other"
        other.mkdir()
        format_folder(other)
        with opened(other) as copy:
            copy.append(log.read(0, 1), 3)
            assert copy.shape() == shape


def test_a_truncation_of_metadata_is_a_warning_and_one_of_control_records_is_not(tmp_path: Path) -> None:
    format_folder(tmp_path)
    with opened(tmp_path) as log:
        log.append_control(1, [LeaderChangeMessage(0, 1)])
        assert cut_level(log.log, 0) == logging.INFO
        log.append(metadata_batch(1, 1), 1)
        assert cut_level(log.log, 0) == cut_level(log.log, 1) == logging.WARNING
        assert cut_level(log.log, 2) == logging.INFO


def test_a_batch_that_does_not_continue_the_log_is_rejected_without_a_change(tmp_path: Path) -> None:
    format_folder(tmp_path)
    with opened(tmp_path) as log:
        log.append_control(3, [LeaderChangeMessage(0, 1)])
        before = log.shape()
        with pytest.raises(CorruptRecordError, match="leader epoch 2, after 3"):
            log.append(metadata_batch(1, 2), 3)
        assert log.shape() == before


def test_a_damaged_snapshot_is_discarded_and_another_serves_its_chunks(tmp_path: Path) -> None:
    format_folder(tmp_path)
    wanted = SnapshotId(20, 4)
    data = snapshot_bytes(tmp_path, wanted, VOTERS, [b"state"])
    with opened(tmp_path) as log:
        before = log.shape()
        log.write_chunk(wanted, 0, data[:-1] + bytes([data[-1] ^ 1]), last=True)
        assert log.shape() == before
        assert log.read_piece(wanted, 0, 100) is None
        log.write_chunk(wanted, 0, data, last=True)
        assert log.read_piece(wanted, 10, 20) == (len(data), data[10:30])
        assert (log.shape().start, log.shape().snapshot, log.shape().epoch) == (20, wanted, 4)


def test_a_damaged_snapshot_without_the_log_before_it_is_reported_with_the_remedy(tmp_path: Path) -> None:
    format_folder(tmp_path)
    wanted = SnapshotId(20, 4)
    with opened(tmp_path, clean=True) as log:
        log.write_chunk(wanted, 0, snapshot_bytes(tmp_path, wanted, VOTERS, []), last=True)
        path = log.directory / snapshot.SnapshotId(*wanted).file_name
    path.write_bytes(path.read_bytes() + b"more")
    with (
        pytest.raises(
            KafkaError, match=rf"{path} cannot be read .*stands for all before offset 20: restore the directory"
        ),
        opened(tmp_path),
    ):
        pass


def test_a_kill_after_a_fetched_snapshot_leaves_a_valid_log(tmp_path: Path) -> None:
    format_folder(tmp_path)
    wanted = SnapshotId(20, 4)
    with opened(tmp_path) as log:
        log.write_chunk(wanted, 0, snapshot_bytes(tmp_path, wanted, VOTERS, []), last=True)
    partition = tmp_path / "flights-0"
    partition.mkdir()
    (partition / f"{0:020}.log").touch()
    with opened(tmp_path) as log:
        assert (log.shape().start, log.shape().snapshot) == (20, wanted)


@pytest.mark.parametrize("voters", [1, 3])
def test_damage_is_repaired_by_a_single_voter_and_not_if_other_voters_have_the_records(
    tmp_path: Path, voters: int
) -> None:
    format_folder(tmp_path, SETS[voters - 1])
    with opened(tmp_path) as log:
        for offset in range(3):
            log.append(metadata_batch(offset, 1), 1)
        path = log.directory / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    words = "take this node out of the voters" if voters > 1 else "ottla log repair"
    with pytest.raises(ConfigError, match=rf"offsets 1 to 1\) are damaged.*{words}"), opened(tmp_path):
        pass
    if voters > 1:
        with pytest.raises(ConfigError, match=words):
            list(plan(tmp_path, [], {}))
    else:
        assert len(list(plan(tmp_path, [], {}))) == 1
    assert path.read_bytes() == data


def test_a_node_without_the_snapshot_before_its_log_does_not_vote(tmp_path: Path) -> None:
    format_folder(tmp_path)
    wanted = SnapshotId(20, 4)
    with opened(tmp_path, clean=True) as log:
        log.write_chunk(wanted, 0, snapshot_bytes(tmp_path, wanted, VOTERS, []), last=True)
        log.append(metadata_batch(20, 4), 4)
        name = log.directory / snapshot.SnapshotId(*wanted).file_name
    name.unlink()
    with (
        pytest.raises(KafkaError, match="begins at offset 20, and no snapshot stands for what was before"),
        opened(tmp_path),
    ):
        pass
