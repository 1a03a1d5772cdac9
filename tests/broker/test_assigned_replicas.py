"""The work of a broker after changes of the metadata: replicas are opened, led, followed and removed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.event_loop.disk import Disk
from ottla.broker.event_loop.timers import Timers
from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.broker.metadata.topics import Topics
from ottla.broker.peers.peers import Peers
from ottla.broker.registration.controller_channel import ChannelRequest, ControllerChannel
from ottla.broker.replica_manager.assigned_replicas import AssignedReplicas
from ottla.broker.replica_manager.directory_assignments import DirectoryAssignments
from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.isr_changes import REFUSED_SECONDS, IsrChanges
from ottla.broker.replica_manager.leadership import Leadership, become_leader
from ottla.broker.replica_manager.log_flusher import LogFlusher
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partitions import Partitions
from ottla.broker.replica_manager.replica_fetcher import LeaderFetcher, Replica
from ottla.broker.replica_manager.replica_roles import STRETCH_SECONDS
from ottla.broker.replica_manager.replication_throttle import FOLLOWER, ThrottledReplicas
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import ManualClock
from ottla.coordination.cluster.node_records import RegisterBrokerRecord
from ottla.coordination.cluster.records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from ottla.coordination.replication.assignment import LiveBrokers, ReplicaAssignment
from ottla.errors import ErrorCode
from ottla.model import INT32_MAX, INT64_MAX, TopicPartition
from ottla.network.selector import Selector
from ottla.protocol.messages import alter_partition, assign_replicas_to_dirs
from ottla.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ottla.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from ottla.protocol.schema import Message
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.broker.wire import batch
from tests.patience import eventually

ME, OTHER, THIRD, STRANGER = 1, 2, 3, 77
EPOCHS = {ME: 10, OTHER: 20, THIRD: 30}
HERE, THERE, LOST = UUID(int=500), UUID(int=501), UUID(int=502)
TOPIC, EARLIER = UUID(int=7), UUID(int=(1 << 128) // 3)


class Controllers(ControllerChannel):
    """A substitute for the controllers that records requests and answers with responses from the test."""

    def __init__(self) -> None:
        self.asked: list[ChannelRequest] = []

    def send_request(self, errand: ChannelRequest) -> None:
        self.asked.append(errand)

    def requests(self) -> list[Message]:
        return [each.request for each in self.asked]

    def answer(self, code: int = ErrorCode.NONE) -> AlterPartitionRequest:
        """The oldest AlterPartition, answered with this for its partition."""
        errand = self.asked.pop(0)
        assert isinstance(errand.request, AlterPartitionRequest)
        (topic,) = errand.request.topics
        result = alter_partition.PartitionData(topic.partitions[0].partition_index, code)
        errand.done(AlterPartitionResponse(topics=[alter_partition.TopicData(topic.topic_id, [result])]))
        return errand.request


class House:
    """All that a broker's copies need, turned by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock, self.timers = ManualClock(), Timers()
        self.selector = Selector(clock=self.clock)
        config = BrokerConfig(node_id=ME, replica_lag_time_max_ms=10_000)
        self.directory = DataDirectory.open(path, node_id=ME)
        self.disk = Disk(lambda call: call())
        self.partitions = Partitions(config, self.directory, self.clock, self.disk)
        log = Log.open(path / "__cluster_metadata-0", LogConfig(segment_bytes=INT32_MAX), now_ms=0, clean=True)
        self.metadata = ObservedMetadata(log, self.clock)
        self.controllers = Controllers()
        self.waiting = FetchPurgatory(self.timers)
        self.seconds_to_lead = 0.0
        self.topics = Topics(config, self.metadata, self.partitions, lambda settings: None)
        self.partitions_led: list[Partition] = []
        self.partitions_lost: list[Partition] = []
        self.names_deleted: list[str] = []
        asked = ME, lambda: EPOCHS[ME], self.controllers, self.timers, self.clock
        self.replicas = AssignedReplicas(
            lambda: config,
            self.metadata,
            self.partitions,
            self._lead,
            self._fetcher,
            IsrChanges(*asked),
            DirectoryAssignments(lambda partition: HERE, *asked, self.directory.has_less_than),
            self,
            self.waiting,
            LogFlusher(self.disk, self.timers, self.clock, self.suspect),
            self.timers,
            self.clock,
        )
        for broker, epoch in EPOCHS.items():
            self.metadata.machine.replay(RegisterBrokerRecord(broker, broker_epoch=epoch, fenced=False))

    def _lead(
        self,
        partition: Partition,
        assignment: ReplicaAssignment,
        brokers: LiveBrokers,
        on_change: Callable[[Leadership], None],
    ) -> None:
        self.clock.advance(self.seconds_to_lead)
        become_leader(partition, ME, assignment, brokers, self.waiting, self.clock.monotonic(), 10.0, on_change)

    def led(self, partition: Partition) -> None:
        self.partitions_led.append(partition)

    def lost(self, partition: Partition) -> None:
        self.partitions_lost.append(partition)

    def topics_deleted(self, names: Collection[str]) -> None:
        self.names_deleted += names

    def suspect(self, error: BaseException | None, partition: Partition | None) -> None:
        """Do nothing: no directory of this broker fails."""

    def is_served_elsewhere(self, partition: Partition) -> bool:
        return self.replicas.is_served_elsewhere(partition)

    def _fetcher(self, leader: int) -> LeaderFetcher:
        me = Replica(ME, lambda: EPOCHS[ME], HERE)
        connection = Peers(BrokerConfig(), self.clock).connect_to_broker("fetcher", self.selector, self.timers)
        throttled = ThrottledReplicas(FOLLOWER, lambda: INT64_MAX, lambda topic: {}, ME, self.clock)
        return LeaderFetcher(leader, lambda broker: None, me, self.timers, self.clock, connection, throttled)

    def say(self, *records: Message) -> None:
        """Apply these records to the metadata."""
        for record in records:
            self.metadata.machine.replay(record)
        self.replicas.apply_metadata()

    def topic(
        self,
        *replicas: int,
        name: str = "t",
        topic_id: UUID = TOPIC,
        directory: UUID = HERE,
        in_sync: Sequence[int] = (),
    ) -> None:
        """Create a topic with one partition, led by the first replica, which is the only ISR member unless another ISR
        is given.
        """
        directories = [directory if each == ME else THERE for each in replicas]
        partition = PartitionRecord(
            0, topic_id, replicas, in_sync or replicas[:1], leader=replicas[0], leader_epoch=4, directories=directories
        )
        self.say(TopicRecord(name, topic_id), partition)

    def partitions_of(self, count: int) -> None:
        """A topic of so many, each led by this broker."""
        self.say(TopicRecord("t", TOPIC), *(led_here(index) for index in range(count)))

    def indices_led(self) -> list[int]:
        return [each.topic_partition.partition for each in self.partitions if each.leads]

    def found(self) -> Partition:
        partition = self.partitions.find("t", 0)
        assert partition is not None
        return partition

    @property
    def leadership(self) -> Leadership:
        leadership = self.found().leadership
        assert leadership is not None
        return leadership

    def fetched(self, offset: int = 0) -> None:
        """The other broker has all up to there."""
        assert self.leadership.handle_fetch(OTHER, offset, EPOCHS[OTHER], self.clock.monotonic())

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.run(self.clock.monotonic())

    def close(self) -> None:
        self.replicas.close()
        self.selector.close_all()
        self.disk.close()
        self.directory.close(clean=False)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    house.replicas.start()
    yield house
    house.close()


def led_here(index: int) -> PartitionRecord:
    return PartitionRecord(index, TOPIC, [ME, OTHER], [ME], leader=ME, leader_epoch=4, directories=[HERE, THERE])


def in_sync(request: Message) -> list[tuple[int, int]]:
    assert isinstance(request, AlterPartitionRequest)
    (partition,) = request.topics[0].partitions
    return [(each.broker_id, each.broker_epoch) for each in partition.new_isr_with_epochs]


def test_nothing_is_done_before_the_metadata_are_known(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.topic(ME)
    assert house.partitions.find("t", 0) is None
    house.replicas.start()
    assert house.found().leads
    house.close()


def test_an_assigned_replica_becomes_leader_or_follower(house: House) -> None:
    house.topic(ME, OTHER)
    assert house.found().leads
    assert house.leadership.log.epochs.entries == [(4, 0)]
    house.say(PartitionChangeRecord(0, TOPIC, leader=OTHER))
    assert house.found().epoch_error(-1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (house.found().leadership, house.found().leader_epoch, house.found().log.replicated) == (None, 5, True)
    house.say(PartitionChangeRecord(0, TOPIC, leader=ME))
    assert (house.found().epoch_error(6), house.leadership.machine.assignment.leader_epoch) == (ErrorCode.NONE, 6)


def test_a_partition_with_one_replica_requires_one_in_sync_replica(house: House) -> None:
    house.say(TopicRecord("t", TOPIC), ConfigRecord(2, "t", "min.insync.replicas", "2"))
    house.say(PartitionRecord(0, TOPIC, [ME], [ME], leader=ME, leader_epoch=4, directories=[HERE]))
    assert (house.found().replicated, house.found().min_insync_replicas) == (False, 1)


def test_a_caught_up_follower_is_proposed_once_with_the_broker_epochs(house: House) -> None:
    house.topic(ME, OTHER)
    house.fetched()
    house.fetched()
    (request,) = house.controllers.requests()
    assert in_sync(request) == [(ME, 10), (OTHER, 20)]
    house.controllers.answer()
    house.fetched()
    assert not house.controllers.asked
    house.say(PartitionChangeRecord(0, TOPIC, isr=[ME, OTHER]))
    assert house.leadership.machine.assignment.in_sync == {ME, OTHER}
    house.fetched()
    assert not house.controllers.asked


def test_a_rejected_proposal_is_repeated_after_a_pause(house: House) -> None:
    house.topic(ME, OTHER)
    house.fetched()
    house.controllers.answer(ErrorCode.INELIGIBLE_REPLICA)
    house.fetched()
    assert not house.controllers.asked
    house.wait(REFUSED_SECONDS)
    assert in_sync(house.controllers.answer()) == [(ME, 10), (OTHER, 20)]


def test_a_proposal_without_a_response_is_repeated(house: House) -> None:
    house.topic(ME, OTHER)
    house.fetched()
    house.controllers.asked.pop().done(None)
    assert not house.controllers.asked
    house.wait(1)
    assert in_sync(house.controllers.answer()) == [(ME, 10), (OTHER, 20)]


def test_a_proposal_for_an_older_state_waits_for_the_metadata(house: House) -> None:
    house.topic(ME, OTHER)
    house.fetched()
    house.controllers.answer(ErrorCode.INVALID_UPDATE_VERSION)
    house.wait(REFUSED_SECONDS)
    house.fetched()
    assert not house.controllers.asked
    house.say(PartitionChangeRecord(0, TOPIC, removing_replicas=[]))
    assert in_sync(house.controllers.answer()) == [(ME, 10), (OTHER, 20)]


def test_a_silent_follower_is_removed_without_another_event(house: House) -> None:
    house.topic(ME, OTHER)
    house.say(PartitionChangeRecord(0, TOPIC, isr=[ME, OTHER]))
    house.fetched()
    house.found().log.append(batch([b"a"]), leader_epoch=4, now_ms=0)
    house.leadership.handle_append(house.clock.monotonic())
    assert house.found().log.high_watermark == 0
    for _ in range(3):
        house.wait(5)
    assert in_sync(house.controllers.answer()) == [(ME, 10)]
    house.say(PartitionChangeRecord(0, TOPIC, isr=[ME]))
    assert house.found().log.high_watermark == 1


def test_metadata_that_name_unregistered_brokers_are_harmless(house: House) -> None:
    house.topic(STRANGER, ME)
    house.wait(60.0)
    assert not house.found().leads
    other = UUID(int=8)
    house.topic(ME, STRANGER, name="u", topic_id=other)
    led = house.partitions.find("u", 0)
    assert led is not None
    assert led.leadership is not None
    assert led.leadership.handle_fetch(STRANGER, 0, 99, house.clock.monotonic())
    assert not house.controllers.asked
    house.say(PartitionChangeRecord(0, TOPIC, leader=ME))
    assert house.indices_led() == [0, 0]


def test_an_unfenced_broker_may_join_the_isr(house: House) -> None:
    house.say(RegisterBrokerRecord(OTHER, broker_epoch=21))
    house.topic(ME, OTHER)
    assert house.leadership.handle_fetch(OTHER, 0, 21, house.clock.monotonic())
    assert not house.controllers.asked
    house.say(RegisterBrokerRecord(OTHER, broker_epoch=21, fenced=False))
    assert in_sync(house.controllers.answer()) == [(ME, 10), (OTHER, 21)]


def test_a_removed_replica_is_deleted_with_its_files(house: House) -> None:
    house.topic(ME, OTHER)
    folder = house.found().log.directory
    house.say(PartitionChangeRecord(0, TOPIC, replicas=[OTHER], leader=OTHER, directories=[THERE]))
    assert house.partitions.find("t", 0) is None
    eventually(lambda: not folder.exists())
    house.say(PartitionChangeRecord(0, TOPIC, replicas=[OTHER, ME], directories=[THERE, HERE]))
    assert house.found().log.end_offset == 0


def test_a_deleted_topic_is_removed_and_a_recreated_one_starts_empty(house: House) -> None:
    house.topic(ME)
    house.found().log.append(batch([b"a"]), leader_epoch=4, now_ms=0)
    house.say(RemoveTopicRecord(TOPIC))
    assert house.partitions.find("t", 0) is None
    house.topic(ME, topic_id=UUID(int=8))
    assert house.found().log.end_offset == 0


def test_a_topic_deleted_and_recreated_between_two_updates_is_a_different_topic(house: House) -> None:
    house.topic(ME)
    house.found().log.append(batch([b"a"]), leader_epoch=4, now_ms=0)
    house.metadata.machine.replay(RemoveTopicRecord(TOPIC))
    house.topic(ME, topic_id=UUID(int=8))
    assert (house.found().topic_id, house.found().log.end_offset) == (UUID(int=8), 0)


def test_the_folder_of_an_earlier_topic_of_the_same_name_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = DataDirectory.open(tmp_path, node_id=ME)
    name = TopicPartition("t", 0)
    before.open_log(name, LogConfig(), now_ms=0, topic_id=EARLIER).append(batch([b"a"]), leader_epoch=0, now_ms=0)
    before.close()
    house = House(tmp_path)
    house.topic(ME)
    house.replicas.start()
    assert house.found().log.end_offset == 0
    assert len(list(tmp_path.glob("t-0.*-stray"))) == 1
    assert "is of an earlier topic of that name" in caplog.text
    house.close()


def test_an_unknown_folder_is_reported_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = DataDirectory.open(tmp_path, node_id=ME)
    before.open_log(TopicPartition("gone", 3), LogConfig(), now_ms=0, topic_id=UUID(int=6))
    before.close()
    house = House(tmp_path)
    house.replicas.start()
    assert "gone-3 belongs to no partition of this broker" in caplog.text
    assert (tmp_path / "gone-3").is_dir()
    house.close()


def test_a_restarted_broker_with_the_only_replica_accepts_records(house: House) -> None:
    house.topic(ME)
    house.say(PartitionChangeRecord(0, TOPIC, leader=-1, isr=[]))  # with ELR the ISR is empty while it is down
    partition = house.partitions.find("t", 0)
    assert partition is not None
    assert partition.replicas_in_sync == 0
    house.say(PartitionChangeRecord(0, TOPIC, leader=ME, isr=[ME]))
    assert partition.replicas_in_sync == 1


def test_transactions_are_completed_as_soon_as_their_partition_is_led_here(house: House) -> None:
    house.topic(OTHER, ME, name="__transaction_state")
    assert not house.partitions_led
    house.say(PartitionChangeRecord(0, TOPIC, leader=ME))
    assert house.partitions_led == [house.partitions.find("__transaction_state", 0)]


def test_groups_are_unloaded_when_their_partition_gets_another_leader_or_is_removed(house: House) -> None:
    house.topic(ME, OTHER, name="__consumer_offsets")
    partition = house.partitions.find("__consumer_offsets", 0)
    assert (partition is not None and partition.leads, house.partitions_lost) == (True, [])
    house.say(PartitionChangeRecord(0, TOPIC, leader=OTHER))
    assert house.partitions_lost == [partition]
    house.say(PartitionChangeRecord(0, TOPIC, leader=ME))
    house.say(PartitionChangeRecord(0, TOPIC, replicas=[OTHER], isr=[OTHER], leader=OTHER))
    assert house.partitions_lost == [partition, partition]


def test_groups_are_informed_of_deleted_topics(house: House) -> None:
    house.topic(OTHER, THIRD, name="elsewhere")
    house.say(RemoveTopicRecord(TOPIC))
    assert house.names_deleted == ["elsewhere"]


def test_the_directory_of_a_replica_is_reported_to_the_controllers(house: House) -> None:
    house.topic(ME, OTHER, directory=UUID(int=0))
    (errand,) = house.controllers.asked
    assert isinstance(errand.request, AssignReplicasToDirsRequest)
    topics = [assign_replicas_to_dirs.RequestTopicData(TOPIC, [assign_replicas_to_dirs.RequestPartitionData(0)])]
    assert errand.request.directories == [assign_replicas_to_dirs.RequestDirectoryData(HERE, topics)]
    errand.done(None)
    house.wait(1)
    assert len(house.controllers.asked) == 2
    house.controllers.asked[1].done(AssignReplicasToDirsResponse())
    house.say(PartitionChangeRecord(0, TOPIC, directories=[HERE, THERE]))
    assert len(house.controllers.asked) == 2


def test_a_replica_on_a_new_disk_is_reported_when_it_has_caught_up(house: House) -> None:
    house.topic(OTHER, ME, directory=LOST)
    house.say(PartitionChangeRecord(0, TOPIC, leader=-1))
    assert house.controllers.asked == []
    house.say(PartitionChangeRecord(0, TOPIC, leader=OTHER, isr=[OTHER, ME]))
    (errand,) = house.controllers.asked
    assert isinstance(errand.request, AssignReplicasToDirsRequest)


def test_the_only_replica_of_a_partition_is_reported_although_its_disk_is_new(house: House) -> None:
    house.topic(ME, directory=LOST)
    assert len(house.controllers.asked) == 1


def test_a_replica_moved_here_with_its_folder_is_reported_at_once(house: House) -> None:
    (house.path / "t-0").mkdir()
    house.topic(OTHER, ME, directory=LOST)
    assert len(house.controllers.asked) == 1


def test_a_replica_started_on_a_new_disk_is_recognized_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        house = House(tmp_path)
        house.replicas.start()
        house.topic(OTHER, ME, directory=LOST)
        assert house.found().log.end_offset == 0
        assert house.controllers.asked == []
        house.close()


def test_clients_are_served_between_two_time_slices_for_thousands_of_partitions(house: House) -> None:
    house.seconds_to_lead = STRETCH_SECONDS / 2
    house.partitions_of(5)
    assert house.indices_led() == [0, 1]
    waiting = house.partitions.find("t", 4)
    assert waiting is not None
    assert (waiting.epoch_error(-1), waiting.opened_log) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
    house.wait(0)
    assert house.indices_led() == [0, 1, 2, 3]
    house.wait(0)
    assert house.indices_led() == [0, 1, 2, 3, 4]


def test_a_queued_replica_gets_its_latest_role(house: House) -> None:
    house.seconds_to_lead = STRETCH_SECONDS
    house.partitions_of(3)
    house.say(PartitionChangeRecord(2, TOPIC, leader=OTHER))
    house.wait(0)
    assert house.indices_led() == [0, 1]
    followed = house.partitions.find("t", 2)
    assert followed is not None
    assert (followed.replicated, followed.leader_epoch, followed.leadership) == (True, 5, None)


def test_a_queued_replica_that_is_removed_is_never_opened(house: House) -> None:
    house.seconds_to_lead = STRETCH_SECONDS
    house.partitions_of(2)
    house.say(RemoveTopicRecord(TOPIC))
    house.wait(0)
    assert (list(house.partitions), list(house.path.glob("t-1*"))) == ([], [])


def test_all_replicas_are_opened_before_a_broker_is_unfenced(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.seconds_to_lead = STRETCH_SECONDS
    house.partitions_of(3)
    house.replicas.start()
    assert house.indices_led() == [0, 1, 2]
    house.close()
