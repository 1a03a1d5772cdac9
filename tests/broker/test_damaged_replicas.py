"""A broker with a damaged replica transfers its leaderships to complete replicas and follows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.replica_manager.followed_partition import FollowedPartition
from ottla.broker.replica_manager.replica_healing import HEIR_SECONDS, RELIEF_SECONDS
from ottla.broker.replica_manager.replica_roles import AGAIN_SECONDS, HEIR_LOOK_SECONDS
from ottla.coordination.cluster.node_records import RegisterBrokerRecord
from ottla.coordination.cluster.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from ottla.coordination.cluster.topic import LOST
from ottla.coordination.replication.fetch_session import ReplicaPlace
from ottla.kafka_id import text_of
from ottla.model import TopicPartition
from ottla.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log_config import LogConfig
from tests.broker.test_assigned_replicas import EPOCHS, HERE, ME, OTHER, THERE, THIRD, TOPIC, House
from tests.storage.batches import append
from tests.storage.lost_files import SMALL, cut, lose

RECORDS = 10


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """The log of the local replica lacks offsets 4 and 5."""
    directory = DataDirectory.open(tmp_path, node_id=ME)
    log = directory.open_log(TopicPartition("t", 0), SMALL, now_ms=0, topic_id=TOPIC)
    for _ in range(RECORDS):
        append(log, b"a")
    directory.close()
    lose(tmp_path / "t-0", 4)
    house = House(tmp_path)
    house.replicas.start()
    yield house
    house.close()


def places(house: House) -> list[UUID]:
    """Return the directories that were reported to the controllers, and acknowledge the reports."""
    errands = [each for each in house.controllers.asked if isinstance(each.request, AssignReplicasToDirsRequest)]
    house.controllers.asked = [each for each in house.controllers.asked if each not in errands]
    for each in errands:
        each.done(AssignReplicasToDirsResponse())
    requests = [each.request for each in errands if isinstance(each.request, AssignReplicasToDirsRequest)]
    return [directory.id for request in requests for directory in request.directories]


def followed(house: House) -> FollowedPartition:
    return house.replicas._roles._followed[ReplicaPlace(TOPIC, 0)]


def test_a_damaged_replica_with_others_in_the_isr_is_not_led_and_followed_once_another_leads(house: House) -> None:
    house.topic(ME, OTHER, THIRD, in_sync=(ME, OTHER))
    assert (house.indices_led(), places(house)) == ([], [LOST])
    house.say(PartitionChangeRecord(0, TOPIC, leader=OTHER, isr=[OTHER], directories=[LOST, THERE, THERE]))
    assert places(house) == [HERE]
    assert followed(house).fetch_offset == 4
    house.say(PartitionChangeRecord(0, TOPIC, directories=[HERE, THERE, THERE]))
    assert (followed(house).fetch_offset, places(house)) == (4, [])


def test_a_damaged_replica_alone_in_the_isr_leads_and_keeps_its_records(house: House) -> None:
    house.topic(ME, OTHER)
    assert (house.indices_led(), places(house)) == ([0], [])
    assert len(list(house.found().log.known_damages())) == 1


def test_a_damaged_only_isr_member_transfers_leadership_when_another_replica_joins(house: House) -> None:
    house.topic(ME, OTHER)
    house.say(PartitionChangeRecord(0, TOPIC, isr=[ME, OTHER]))
    assert (house.indices_led(), places(house)) == ([0], [LOST])
    assert house.replicas.is_served_elsewhere(house.found())
    house.wait(RELIEF_SECONDS)
    assert not house.replicas.is_served_elsewhere(house.found())
    assert places(house) == []


def test_a_damaged_replica_leads_after_a_while_if_no_other_takes_over(house: House) -> None:
    house.topic(ME, OTHER, in_sync=(ME, OTHER))
    assert house.indices_led() == []
    house.wait(RELIEF_SECONDS)
    assert (house.indices_led(), places(house)) == ([0], [LOST])


def test_an_offline_replica_cannot_take_over(house: House) -> None:
    house.topic(ME, 77, in_sync=(ME, 77))
    assert (house.indices_led(), places(house)) == ([0], [])
    assert not house.replicas.is_served_elsewhere(house.found())


def test_a_follower_leaves_the_isr_before_it_is_copied_again(house: House) -> None:
    house.topic(OTHER, ME, in_sync=(OTHER, ME))
    assert (followed(house).fetch_offset, places(house)) == (RECORDS, [LOST])
    house.say(PartitionChangeRecord(0, TOPIC, isr=[OTHER], directories=[THERE, LOST]))
    assert (followed(house).fetch_offset, places(house)) == (4, [HERE])


def test_a_damaged_replica_in_the_elr_keeps_its_records(house: House) -> None:
    house.topic(OTHER, ME)
    house.say(PartitionChangeRecord(0, TOPIC, eligible_leader_replicas=[ME]))
    assert followed(house).fetch_offset == RECORDS
    house.say(PartitionChangeRecord(0, TOPIC, eligible_leader_replicas=[]))
    assert followed(house).fetch_offset == 4


def test_readers_of_a_damaged_replica_are_sent_to_its_leader(house: House) -> None:
    house.topic(OTHER, ME)
    assert house.replicas.is_served_elsewhere(house.found())
    house.wait(0.0)
    assert (followed(house).fetch_offset, places(house)) == (4, [])


@pytest.fixture(params=["version: 0\n", f"version: 0\ntopic_id: {text_of(UUID(int=TOPIC.int ^ 1 << 64))}\n"])
def shut(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[House]:
    """Damage the topic id in partition.metadata, so that it is missing or different."""
    directory = DataDirectory.open(tmp_path, node_id=ME)
    append(directory.open_log(TopicPartition("t", 0), SMALL, now_ms=0, topic_id=TOPIC), b"a")
    directory.close()
    (tmp_path / "t-0" / "partition.metadata").write_text(request.param)
    house = House(tmp_path)
    house.replicas.start()
    yield house
    house.close()


def test_an_unreadable_replica_gets_another_leader_and_its_files_are_kept(
    shut: House, caplog: pytest.LogCaptureFixture
) -> None:
    shut.topic(ME, OTHER, in_sync=(ME, OTHER))
    assert (shut.indices_led(), places(shut)) == ([], [LOST])
    assert caplog.messages[-1].endswith(
        "intact on other replicas of the ISR, broker 2; requesting that this replica leaves the ISR"
    )
    shut.say(PartitionChangeRecord(0, TOPIC, leader=OTHER, isr=[OTHER], directories=[LOST, THERE]))
    assert (shut.indices_led(), places(shut)) == ([], [HERE])
    shut.say(PartitionChangeRecord(0, TOPIC, directories=[HERE, THERE]))
    shut.wait(RELIEF_SECONDS + AGAIN_SECONDS)
    assert (shut.indices_led(), places(shut)) == ([], [])


def test_a_leader_with_an_unreadable_log_transfers_leadership_to_a_complete_replica(shut: House) -> None:
    shut.say(RegisterBrokerRecord(OTHER, broker_epoch=EPOCHS[OTHER], fenced=True))
    shut.topic(ME, OTHER, in_sync=(ME, OTHER))
    assert (shut.indices_led(), places(shut)) == ([0], [])
    shut.say(RegisterBrokerRecord(OTHER, broker_epoch=EPOCHS[OTHER] + 1, fenced=False))
    shut.wait(AGAIN_SECONDS)
    assert places(shut) == [LOST]


@pytest.fixture(params=[RECORDS - 1, 0])
def torn(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[House]:
    """A crash has left half of the last record of the copy, or no file of it."""
    directory = DataDirectory.open(tmp_path, node_id=ME)
    log = directory.open_log(TopicPartition("t", 0), LogConfig(), now_ms=0, topic_id=TOPIC)
    for _ in range(RECORDS):
        append(log, b"a")
    directory.close(clean=False)
    cut(tmp_path / "t-0", 0, log.size_bytes - 5)
    if not request.param:
        lose(tmp_path / "t-0", 0)
    house = House(tmp_path)
    house.replicas.start()
    yield house
    house.close()


def killed(house: House, *had_all: int, there: bool = True) -> None:
    """All brokers of a partition were, this one was the last leader, and these had everything, too."""
    house.say(RegisterBrokerRecord(OTHER, broker_epoch=EPOCHS[OTHER], fenced=not there))
    place = PartitionRecord(
        0,
        TOPIC,
        [ME, OTHER, THIRD],
        [ME],
        leader=ME,
        leader_epoch=4,
        directories=[HERE, THERE, THERE],
        last_known_elr=had_all,
    )
    house.say(TopicRecord("t", TOPIC), place)


def test_a_replica_with_a_torn_end_after_a_crash_is_not_led_if_another_was_complete(
    torn: House, request: pytest.FixtureRequest
) -> None:
    killed(torn, OTHER, THIRD)
    assert (torn.indices_led(), places(torn)) == ([], [LOST])
    torn.say(PartitionChangeRecord(0, TOPIC, leader=OTHER, isr=[OTHER], directories=[LOST, THERE, THERE]))
    assert (followed(torn).fetch_offset, places(torn)) == (request.node.callspec.params["torn"], [HERE])
    torn.say(PartitionChangeRecord(0, TOPIC, isr=[OTHER, ME], directories=[HERE, THERE, THERE]))
    assert torn.found().log.fallen_short is None


def test_a_complete_replica_is_waited_for(torn: House) -> None:
    killed(torn, OTHER, there=False)
    for _ in range(3):
        torn.wait(HEIR_LOOK_SECONDS)
        assert (torn.indices_led(), places(torn)) == ([], [])
    torn.say(RegisterBrokerRecord(OTHER, broker_epoch=EPOCHS[OTHER] + 1, fenced=False))
    torn.wait(HEIR_LOOK_SECONDS)
    assert (torn.indices_led(), places(torn)) == ([], [LOST])


def test_a_torn_replica_leads_if_the_complete_one_does_not_return(torn: House) -> None:
    killed(torn, OTHER, there=False)
    torn.wait(HEIR_SECONDS)
    assert (torn.indices_led(), torn.found().log.fallen_short) == ([0], None)
    torn.say(RegisterBrokerRecord(OTHER, broker_epoch=EPOCHS[OTHER] + 1, fenced=False))
    torn.say(PartitionChangeRecord(0, TOPIC, isr=[ME, OTHER]))
    assert (torn.indices_led(), places(torn)) == ([0], [])


def test_a_torn_replica_leads_at_once_if_no_other_was_complete(torn: House) -> None:
    killed(torn)
    assert (torn.indices_led(), places(torn)) == ([0], [])
