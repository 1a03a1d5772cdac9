"""Copying from a leader that is a real broker, by a fetcher in a loop of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from uuid import UUID

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.event_loop.disk import Disk
from ottla.broker.event_loop.timers import Timers
from ottla.broker.node import BrokerNode
from ottla.broker.peers.peers import Peers
from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.followed_partition import FollowedPartition, become_follower
from ottla.broker.replica_manager.log_flusher import LogFlusher
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.replica_fetcher import HELD_BACK_SECONDS, MAX_WAIT_MS, LeaderFetcher, Replica
from ottla.broker.replica_manager.replication_throttle import FOLLOWER, ThrottledReplicas
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import ManualClock, SystemClock
from ottla.coordination.quorum.observer import Address
from ottla.coordination.replication.epochs import EpochEnd
from ottla.coordination.replication.fetched import AppendBatches, RestartAt, TruncateDiverged, TruncateTo
from ottla.kafka_id import id_of
from ottla.model import INT64_MAX, TopicPartition
from ottla.network.selector import Selector
from ottla.protocol.messages.fetch import FetchRequest
from ottla.records.batch import stamp
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.broker.own_connections import turn
from tests.broker.test_replicated_partitions import EPOCH, ME, OTHER, found, in_loop, lead
from tests.broker.wire import Wire, batch
from tests.patience import eventually

SMALL = LogConfig(segment_bytes=400)
CHECKED_FROM = 17
"""The CRC of a batch, and what it covers, begin there."""


class House:
    """The environment of a follower: its directory, and a manual event loop."""

    def __init__(self, path: Path, leader: Broker) -> None:
        self.clock, self.timers = SystemClock(), Timers()
        self.limit = INT64_MAX
        """Bytes a second, of all copies."""
        self.selector = Selector(clock=self.clock)
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.directory = DataDirectory.open(path, node_id=OTHER)
        self.disk = Disk(self.calls.put)
        self.flusher = LogFlusher(self.disk, self.timers, self.clock, lambda error, partition: None)
        host, _, port = leader.bootstrap_servers.rpartition(":")
        self.fetcher = LeaderFetcher(
            ME,
            lambda broker: Address(host, int(port)),
            Replica(OTHER, lambda: 20, id_of(self.directory.meta.directory_id)),
            self.timers,
            self.clock,
            Peers(BrokerConfig(), self.clock).connect_to_broker("fetcher", self.selector, self.timers),
            ThrottledReplicas(FOLLOWER, lambda: self.limit, lambda topic: {FOLLOWER: "*"}, OTHER, self.clock),
        )

    def follow(self, wire: Wire, leader_epoch: int = EPOCH, *, in_sync: bool = False) -> FollowedPartition:
        topic_id = wire.metadata("t").topics[0].topic_id
        partition = Partition(TopicPartition("t", 0), topic_id, self._open, leader_epoch=leader_epoch)
        become_follower(partition, leader_epoch, FetchPurgatory(self.timers), self.clock)
        followed = FollowedPartition(
            partition, ME, self.clock, self.flusher, FetchPurgatory(self.timers), in_sync=in_sync
        )
        self.fetcher.add(followed)
        return followed

    def _open(self, name: TopicPartition, topic_id: UUID) -> Log:
        return self.directory.open_log(name, SMALL, now_ms=0, topic_id=topic_id, replicated=True)

    def turn(self) -> None:
        """Do what there is to do."""
        turn(self.selector)
        self.timers.run(self.clock.monotonic())
        try:
            while True:
                self.calls.get_nowait()()
        except Empty:
            pass

    def until(self, condition: Callable[[], bool]) -> None:
        def turned() -> bool:
            self.turn()
            return condition()

        eventually(turned)

    def close(self) -> None:
        self.fetcher.close()
        self.disk.close()
        self.turn()
        self.selector.close_all()
        self.directory.close(clean=False)


@pytest.fixture
def leader() -> Iterator[Broker]:
    with Broker(node_id=ME, log_segment_bytes=400) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        lead(broker, ME, OTHER)
        yield broker


@pytest.fixture
def house(tmp_path: Path, leader: Broker) -> Iterator[House]:
    house = House(tmp_path / "follower", leader)
    yield house
    house.close()


@pytest.fixture
def wire(leader: Broker) -> Iterator[Wire]:
    with Wire(leader.bootstrap_servers) as wire:
        yield wire


def write(broker: Broker, *values: bytes) -> None:
    """Append a batch for each, of one record."""

    def append(node: BrokerNode) -> None:
        for value in values:
            node.append(found(node), batch([value]))

    in_loop(broker, append)


def ends(broker: Broker) -> tuple[int, int]:
    """Return the end and the high watermark of the leader's log."""
    seen: list[int] = []
    in_loop(broker, lambda node: seen.extend((found(node).log.end_offset, found(node).log.high_watermark)))
    return seen[0], seen[1]


def placed(offset: int, epoch: int, value: bytes) -> bytearray:
    """A batch as a leader has it."""
    data = bytearray(batch([value]))
    stamp(data, 0, offset, epoch)
    return data


def files(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted(path.glob("*.log"))}


def leaders_files(broker: Broker) -> dict[str, bytes]:
    seen: list[Path] = []
    in_loop(broker, lambda node: seen.append(found(node).log.directory))
    return files(seen[0])


@pytest.mark.behaviour("B4")
def test_a_replica_has_the_leaders_files_and_its_records_are_committed(
    leader: Broker, wire: Wire, house: House
) -> None:
    write(leader, *(b"%d" % number * 40 for number in range(20)))
    followed = house.follow(wire)
    house.until(lambda: followed.log.high_watermark == 20)
    assert files(followed.log.directory) == leaders_files(leader)
    assert len(files(followed.log.directory)) > 2
    assert ends(leader) == (20, 20)


def test_replication_continues_and_fetches_only_changed_partitions(leader: Broker, wire: Wire, house: House) -> None:
    followed = house.follow(wire)
    for number in range(5):
        write(leader, b"a")
        house.until(lambda end=number + 1: followed.log.end_offset == end)  # type: ignore[misc]
    assert files(followed.log.directory) == leaders_files(leader)


def test_records_that_the_leader_lacks_are_truncated_and_replaced(leader: Broker, wire: Wire, house: House) -> None:
    write(leader, b"a", b"b")
    followed = house.follow(wire)
    house.until(lambda: followed.log.end_offset == 2)
    house.fetcher.remove(followed.place)
    # It led meanwhile, in an epoch of which its leader of now has nothing.
    followed.log.append(batch([b"lost", b"too"]), leader_epoch=EPOCH + 1, now_ms=0)
    lead(leader, ME, OTHER, leader_epoch=EPOCH + 2, partition_epoch=2)
    write(leader, b"c")
    again = house.follow(wire, EPOCH + 2)
    house.until(lambda: again.log.high_watermark == 3)
    assert files(again.log.directory) == leaders_files(leader)


def test_a_replica_is_reset_if_the_leaders_log_starts_after_its_end(leader: Broker, wire: Wire, house: House) -> None:
    write(leader, *(b"%d" % number * 40 for number in range(20)))

    def drop_the_first(node: BrokerNode) -> None:
        log = found(node).log
        log.advance_high_watermark(20)
        log.advance_start(12)
        log.retain(0)

    in_loop(leader, drop_the_first)
    followed = house.follow(wire)
    house.until(lambda: followed.log.high_watermark == 20)
    assert followed.log.start_offset == 12
    assert min(files(followed.log.directory)) == f"{12:020d}.log"


def test_a_log_start_inside_a_batch_copies_the_whole_batch(leader: Broker, wire: Wire, house: House) -> None:
    def write_and_delete(node: BrokerNode) -> None:
        node.append(found(node), batch([b"a", b"b", b"c"]))
        found(node).log.advance_high_watermark(3)
        found(node).log.advance_start(2)

    in_loop(leader, write_and_delete)
    followed = house.follow(wire)
    house.until(lambda: (followed.log.start_offset, followed.log.high_watermark) == (2, 3))
    assert files(followed.log.directory) == leaders_files(leader)


def test_a_leader_that_does_not_know_the_epoch_yet_is_retried(leader: Broker, wire: Wire, house: House) -> None:
    write(leader, b"a")
    followed = house.follow(wire, EPOCH + 1)
    house.until(lambda: followed.not_before > 0)
    assert followed.log.end_offset == 0
    lead(leader, ME, OTHER, leader_epoch=EPOCH + 1, partition_epoch=1)
    house.until(lambda: followed.log.end_offset == 1)


def test_a_batch_damaged_in_transit_is_not_appended(leader: Broker, wire: Wire, house: House) -> None:
    write(leader, b"a" * 20, b"b" * 20)
    followed = house.follow(wire)
    house.until(lambda: followed.log.end_offset == 2)
    house.fetcher.remove(followed.place)
    (whole,) = leaders_files(leader).values()
    followed.log.truncate_fully_and_start_at(0, now_ms=0)
    chance = random.Random(5)
    for _ in range(200):
        data = bytearray(whole)
        data[chance.randrange(CHECKED_FROM, len(data) // 2)] ^= 1 << chance.randrange(8)
        followed.handle_outcome(AppendBatches(memoryview(data), 2, 0))
        assert (followed.log.end_offset, followed.log.high_watermark) == (0, 0)
    followed.handle_outcome(AppendBatches(memoryview(whole), 2, 0))
    assert files(followed.log.directory) == {f"{0:020d}.log": whole}


def test_a_truncation_of_committed_records_is_logged_as_a_warning(
    leader: Broker, wire: Wire, house: House, caplog: pytest.LogCaptureFixture
) -> None:
    write(leader, b"a", b"b", b"c")
    followed = house.follow(wire)
    house.until(lambda: followed.log.end_offset == 3)
    house.fetcher.remove(followed.place)
    followed.log.advance_high_watermark(2)
    with caplog.at_level("INFO", "ottla.broker.replica_manager"):
        followed.handle_outcome(TruncateTo(2))
        followed.handle_outcome(TruncateTo(1))
    cuts = [each for each in caplog.records if "is truncated" in each.getMessage()]
    assert [each.levelname for each in cuts] == ["INFO", "WARNING"]
    assert "records below 2 were committed" in cuts[1].getMessage()


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        (TruncateDiverged(EpochEnd(EPOCH, -1)), "the leader returned the invalid offset -1"),
        (TruncateTo(-1), "the leader returned the invalid offset -1"),
        (RestartAt(-1), "the leader returned the invalid offset -1"),
        (TruncateDiverged(EpochEnd(EPOCH, 2)), "it returned a diverging offset beyond 2, the end of this log"),
        (TruncateDiverged(EpochEnd(EPOCH + 9, 7)), "it returned a diverging offset beyond 2, the end of this log"),
        (AppendBatches(memoryview(placed(1, EPOCH, b"x")), 2, 0), "the batch has offset 1, expected 2 or more"),
        (
            AppendBatches(memoryview(placed(2, EPOCH + 1, b"x")), 3, 0),
            f"has leader epoch {EPOCH + 1}, the leader's is {EPOCH}",
        ),
        (AppendBatches(memoryview(placed(2, EPOCH - 1, b"x")), 3, 0), f"has leader epoch {EPOCH - 1}, after {EPOCH}"),
        (AppendBatches(memoryview(b"no batch at all"), 3, 0), "without a complete batch"),
    ],
)
def test_an_inconsistent_response_changes_nothing_and_is_retried_later(
    leader: Broker, wire: Wire, house: House, caplog: pytest.LogCaptureFixture, lie: Any, says: str
) -> None:
    write(leader, b"a", b"b")
    followed = house.follow(wire)
    house.until(lambda: followed.log.high_watermark == 2)
    house.fetcher.remove(followed.place)
    before = files(followed.log.directory)
    followed.handle_outcome(lie)
    assert (followed.log.end_offset, followed.log.high_watermark, followed.log.start_offset) == (2, 2, 0)
    assert (followed.machine.high_watermark, files(followed.log.directory)) == (2, before)
    assert followed.not_before > house.clock.monotonic()
    assert says in caplog.text


def test_a_high_watermark_or_log_start_that_decreases_or_exceeds_the_log_is_ignored(
    leader: Broker, wire: Wire, house: House
) -> None:
    write(leader, b"a", b"b")
    followed = house.follow(wire)
    house.until(lambda: followed.log.high_watermark == 2)
    house.fetcher.remove(followed.place)
    for watermark, start in ((0, 0), (-1, -1), (99, 99)):
        followed.handle_outcome(AppendBatches(memoryview(b""), watermark, start))
        assert (followed.log.end_offset, followed.log.high_watermark, followed.log.start_offset) == (2, 2, 0)


def test_a_new_follower_discards_the_epoch_that_it_started_as_leader(leader: Broker, wire: Wire, house: House) -> None:
    write(leader, b"a")
    followed = house.follow(wire)
    house.until(lambda: followed.log.end_offset == 1)
    followed.log.epochs.assign(EPOCH + 5, 1)
    become_follower(followed.partition, EPOCH + 6, FetchPurgatory(house.timers), house.clock)
    assert followed.log.epochs.latest() == EPOCH
    assert followed.partition.epoch_error(-1) != 0


def test_a_replica_above_the_replication_quota_is_throttled_while_it_lags(
    house: House, leader: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    house.limit = 1
    house.fetcher._clock = house.fetcher._throttled._clock = clock
    write(leader, bytes(300))
    copy = house.follow(wire)
    house.until(lambda: copy.log.end_offset == 1)  # the first is let through, and is too much
    copy.lags = True
    house.fetcher._mark_changed(copy)
    write(leader, b"more")
    asked: list[object] = []
    monkeypatch.setattr(house.fetcher._connection, "send_request", asked.append)
    house.fetcher._busy = False
    house.fetcher._run()
    assert (asked, copy.not_before) == ([], clock.monotonic() + HELD_BACK_SECONDS)


def test_the_first_request_of_a_session_is_answered_at_once_and_later_ones_wait(
    house: House, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[FetchRequest] = []
    really = house.fetcher._connection.send_request

    def overheard(question: Any) -> None:
        asked.append(question.request)
        really(question)

    monkeypatch.setattr(house.fetcher._connection, "send_request", overheard)
    house.follow(wire)
    house.until(lambda: len(asked) == 2)
    assert [(each.session_epoch, each.max_wait_ms) for each in asked] == [(0, 0), (1, MAX_WAIT_MS)]
