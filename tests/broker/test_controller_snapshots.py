"""Snapshots that a voter makes of what is committed: the log does not grow, and nothing that it stood for is forgotten."""

from __future__ import annotations

from errno import ENOSPC
from pathlib import Path

import pytest

from ottla.broker.controller.active_controller import load_metadata
from ottla.broker.controller.controller_snapshots import ControllerSnapshots
from ottla.broker.controller.formatting import format_without_voters
from ottla.broker.controller.quorum_log import QuorumLog
from ottla.broker.metadata import observed_snapshots
from ottla.broker.metadata.observed_snapshots import SnapshotRules, run_without_loop
from ottla.clock import ManualClock
from ottla.kafka_id import id_of
from ottla.storage.segments.log_folder import find_segments
from ottla.storage.state_log.snapshot import find_snapshots
from tests.broker.quorum_nodes import CLUSTER, Place, new_hosts
from tests.broker.test_active_controller import Term
from tests.broker.test_quorum_log import format_folder, opened
from tests.patience import eventually

ALWAYS = SnapshotRules(max_bytes=1, max_interval_ms=0, retention_bytes=0, retention_ms=-1)
SELDOM = SnapshotRules(max_bytes=1 << 30, max_interval_ms=60_000)


class Voter:
    """One that leads, and makes snapshots."""

    def __init__(self, log: QuorumLog, rules: SnapshotRules, epoch: int = 1) -> None:
        self.log, self.clock, self.reported = log, ManualClock(), 0
        self.term = Term(log, epoch)
        self.snapshots = ControllerSnapshots(log, rules, self.clock, run_without_loop, self.hear)

    def hear(self) -> None:
        self.reported += 1

    def decide(self, broker: int, ahead: int | None = None) -> None:
        """A record that most nodes have, or, with `ahead`, that no other node has yet."""
        self.term.let_in(broker)
        committed = self.log.log.end_offset
        if ahead is not None:
            self.term.register(ahead)
        self.snapshots.handle_commit(committed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    format_folder(tmp_path)
    return tmp_path


def test_a_snapshot_has_the_committed_state_and_the_log_before_it_is_deleted(folder: Path) -> None:
    with opened(folder) as log:
        voter = Voter(log, ALWAYS)
        voter.decide(1)
        voter.decide(2)
        end, shape = log.log.end_offset, log.shape()
        assert (shape.snapshot, shape.start, shape.start_epoch, shape.end) == ((end, 1), end, 1, end)
        assert find_snapshots(log.directory) == [(end, 1)]
        assert not any(each.st_size for each in find_segments(log.directory).values())
        assert voter.reported == 2


def test_a_snapshot_has_no_uncommitted_records(folder: Path) -> None:
    with opened(folder) as log:
        voter = Voter(log, ALWAYS)
        voter.decide(1)
        committed = log.log.end_offset
        voter.term.register(2)
        voter.snapshots.handle_commit(committed)
        assert find_snapshots(log.directory) == [(committed, 1)]
        assert log.shape().start == committed < log.log.end_offset


def test_the_next_term_and_the_next_start_have_the_whole_state(folder: Path) -> None:
    with opened(folder) as log:
        voter = Voter(log, ALWAYS)
        voter.decide(1)
        voter.decide(2)
        voter.term.register(3)
        before = list(voter.term.controller.machine.metadata.records())
        assert list(load_metadata(log)[0].records()) == before
        voters = log.shape().voters
    with opened(folder) as log:
        assert list(load_metadata(log)[0].records()) == before
        assert log.shape().voters == voters


def test_after_a_kill_the_log_starts_at_its_snapshot_within_the_first_segment(folder: Path) -> None:
    with opened(folder) as log:
        voter = Voter(log, ALWAYS)
        voter.decide(1, ahead=101)
        voter.decide(2, ahead=102)
        start = log.shape().start
        assert min(find_segments(log.directory)) < start
    with opened(folder) as log:
        assert (log.shape().start, log.shape().snapshot) == (start, (start, 1))
        assert set(load_metadata(log)[0].registrations) == {1, 2, 101, 102}


def test_a_snapshot_is_written_only_after_the_size_or_time_limit(folder: Path) -> None:
    with opened(folder) as log:
        voter = Voter(log, SELDOM)
        voter.decide(1)
        assert voter.reported == 0
        voter.clock.advance(60.0)
        voter.decide(2)
        assert voter.reported == 1
        assert log.shape().start == 0, "there is room for the log before it"


def test_the_quorum_continues_and_retries_if_a_snapshot_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*args: object, **more: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    with opened(folder) as log:
        voter = Voter(log, ALWAYS)
        with monkeypatch.context() as patch:
            patch.setattr(observed_snapshots, "write_state", full)
            voter.decide(1)
        assert "No space left on device; nothing is lost by it" in caplog.text
        assert find_snapshots(log.directory) == [(0, 0)]
        voter.decide(2)
        assert log.shape().snapshot == (log.log.end_offset, 1)


def place(folder: Path, number: int, host: str, **more: str) -> Place:
    quick = {"metadata_log_max_snapshot_interval_ms": "200", "metadata_max_retention_bytes": "0"}
    return Place(folder, number, host, **quick, **more)


def begins_behind_a_snapshot(node: Place) -> bool:
    return any(int(path.name[:20]) > 0 for path in (node.data / "__cluster_metadata-0").glob("*.checkpoint"))


def test_a_controller_with_an_empty_disk_gets_a_snapshot_and_the_records_after_it(tmp_path: Path) -> None:
    hosts = new_hosts(2)
    alone = place(tmp_path, 1, hosts[0])
    alone.format([alone.voter])
    other = place(tmp_path, 2, hosts[1], controller_quorum_bootstrap_servers=alone.address)
    meta = format_without_voters(other.config, CLUSTER)
    with alone.serving():
        eventually(lambda: begins_behind_a_snapshot(alone))
        with other.serving():
            eventually(lambda: [each.replica_id for each in alone.describe().observers] == [2])
            end = alone.describe().high_watermark
            eventually(lambda: alone.describe().observers[0].log_end_offset >= end)
            assert alone.describe().observers[0].replica_directory_id == id_of(meta.directory_id)
            eventually(lambda: begins_behind_a_snapshot(other))


def test_a_controller_that_is_killed_repeatedly_recovers_from_its_snapshots(tmp_path: Path) -> None:
    (host,) = new_hosts(1)
    alone = place(tmp_path, 1, host)
    alone.format([alone.voter])
    ends: list[int] = []
    for _ in range(3):
        alone.start()
        try:
            eventually(alone.leads)
            eventually(lambda: alone.describe().high_watermark > max(ends, default=0) + 2)
            eventually(lambda: begins_behind_a_snapshot(alone))
            ends.append(alone.describe().high_watermark)
        finally:
            alone.kill()
    assert ends == sorted(ends)
