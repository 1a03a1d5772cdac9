"""What a broker of a cluster does about a copy that it knows to be damaged: it has others lead, who have all, and follows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.replication.followed_partition import FollowedPartition
from ottla.broker.replication.healing import RELIEF_SECONDS
from ottla.broker.replication.replica_roles import AGAIN_SECONDS
from ottla.coordination.cluster.node_records import RegisterBrokerRecord
from ottla.coordination.cluster.records import PartitionChangeRecord
from ottla.coordination.cluster.topic import LOST
from ottla.coordination.replication.fetch_session import Place
from ottla.model import TopicPartition
from ottla.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log.log_damage import known_damages
from tests.broker.test_hosting import EPOCHS, HERE, ME, OTHER, THERE, THIRD, TOPIC, House
from tests.storage.batches import append
from tests.storage.lost_files import SMALL, lose

RECORDS = 10


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """The copy of the topic's partition that lies here lacks offsets 4 and 5."""
    directory = DataDirectory.open(tmp_path, node_id=ME)
    log = directory.open_log(TopicPartition("t", 0), SMALL, now_ms=0, topic_id=TOPIC)
    for _ in range(RECORDS):
        append(log, b"a")
    directory.close()
    lose(tmp_path / "t-0", 4)
    house = House(tmp_path)
    house.hosting.begin()
    yield house
    house.close()


def places(house: House) -> list[UUID]:
    """In which directories the controllers were told that the copy lies, and they have heard it."""
    errands = [each for each in house.controllers.asked if isinstance(each.request, AssignReplicasToDirsRequest)]
    house.controllers.asked = [each for each in house.controllers.asked if each not in errands]
    for each in errands:
        each.done(AssignReplicasToDirsResponse())
    requests = [each.request for each in errands if isinstance(each.request, AssignReplicasToDirsRequest)]
    return [directory.id for request in requests for directory in request.directories]


def followed(house: House) -> FollowedPartition:
    return house.hosting._roles._followed[Place(TOPIC, 0)]


def test_where_others_are_in_sync_it_is_not_led_and_followed_once_another_leads(house: House) -> None:
    house.topic(ME, OTHER, THIRD, in_sync=(ME, OTHER))
    assert (house.led(), places(house)) == ([], [LOST])
    house.say(PartitionChangeRecord(0, TOPIC, leader=OTHER, isr=[OTHER], directories=[LOST, THERE, THERE]))
    assert places(house) == [HERE]
    assert followed(house).fetch_offset == 4
    house.say(PartitionChangeRecord(0, TOPIC, directories=[HERE, THERE, THERE]))
    assert (followed(house).fetch_offset, places(house)) == (4, [])


def test_where_nobody_else_is_in_sync_it_is_led_and_kept(house: House) -> None:
    house.topic(ME, OTHER)
    assert (house.led(), places(house)) == ([0], [])
    assert len(list(known_damages(house.found().log))) == 1


def test_who_leads_alone_hands_over_when_somebody_is_in_sync(house: House) -> None:
    house.topic(ME, OTHER)
    house.say(PartitionChangeRecord(0, TOPIC, isr=[ME, OTHER]))
    assert (house.led(), places(house)) == ([0], [LOST])
    assert house.hosting.relieves(house.found())
    house.wait(RELIEF_SECONDS)
    assert not house.hosting.relieves(house.found())
    assert places(house) == []


def test_if_nobody_takes_over_it_is_led_after_a_while(house: House) -> None:
    house.topic(ME, OTHER, in_sync=(ME, OTHER))
    assert house.led() == []
    house.wait(RELIEF_SECONDS)
    assert (house.led(), places(house)) == ([0], [LOST])


def test_who_is_away_cannot_take_over(house: House) -> None:
    house.topic(ME, 77, in_sync=(ME, 77))
    assert (house.led(), places(house)) == ([0], [])
    assert not house.hosting.relieves(house.found())


def test_a_follower_is_out_of_sync_before_it_is_copied_anew(house: House) -> None:
    house.topic(OTHER, ME, in_sync=(OTHER, ME))
    assert (followed(house).fetch_offset, places(house)) == (RECORDS, [LOST])
    house.say(PartitionChangeRecord(0, TOPIC, isr=[OTHER], directories=[THERE, LOST]))
    assert (followed(house).fetch_offset, places(house)) == (4, [HERE])


def test_who_may_lead_though_it_is_not_in_sync_keeps_what_it_has(house: House) -> None:
    house.topic(OTHER, ME)
    house.say(PartitionChangeRecord(0, TOPIC, eligible_leader_replicas=[ME]))
    assert followed(house).fetch_offset == RECORDS
    house.say(PartitionChangeRecord(0, TOPIC, eligible_leader_replicas=[]))
    assert followed(house).fetch_offset == 4


def test_whoever_reads_from_a_copy_that_is_damaged_is_to_ask_its_leader(house: House) -> None:
    house.topic(OTHER, ME)
    assert house.hosting.relieves(house.found())
    house.wait(0.0)
    assert (followed(house).fetch_offset, places(house)) == (4, [])


@pytest.fixture
def shut(tmp_path: Path) -> Iterator[House]:
    """Nobody knows of which topic the copy is."""
    directory = DataDirectory.open(tmp_path, node_id=ME)
    append(directory.open_log(TopicPartition("t", 0), SMALL, now_ms=0, topic_id=TOPIC), b"a")
    directory.close()
    (tmp_path / "t-0" / "partition.metadata").write_text("version: 0\n")
    house = House(tmp_path)
    house.hosting.begin()
    yield house
    house.close()


def test_a_copy_that_nobody_may_use_is_led_by_another_and_not_touched(
    shut: House, caplog: pytest.LogCaptureFixture
) -> None:
    shut.topic(ME, OTHER, in_sync=(ME, OTHER))
    assert (shut.led(), places(shut)) == ([], [LOST])
    assert caplog.messages[-1].endswith("in sync with it, broker 2: it is to be so no more")
    shut.say(PartitionChangeRecord(0, TOPIC, leader=OTHER, isr=[OTHER], directories=[LOST, THERE]))
    assert (shut.led(), places(shut)) == ([], [HERE])
    shut.say(PartitionChangeRecord(0, TOPIC, directories=[HERE, THERE]))
    shut.wait(RELIEF_SECONDS + AGAIN_SECONDS)
    assert (shut.led(), places(shut)) == ([], [])


def test_who_leads_what_nobody_may_use_hands_over_when_somebody_is_there_who_has_all(shut: House) -> None:
    shut.say(RegisterBrokerRecord(OTHER, broker_epoch=EPOCHS[OTHER], fenced=True))
    shut.topic(ME, OTHER, in_sync=(ME, OTHER))
    assert (shut.led(), places(shut)) == ([0], [])
    shut.say(RegisterBrokerRecord(OTHER, broker_epoch=EPOCHS[OTHER] + 1, fenced=False))
    shut.wait(AGAIN_SECONDS)
    assert places(shut) == [LOST]
