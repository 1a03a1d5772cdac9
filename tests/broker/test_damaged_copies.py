"""What a broker of a cluster does about a copy that it knows to be damaged: it has others lead, who have all, and follows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.replication.followed_partition import FollowedPartition
from ottla.broker.replication.healing import HEIR_SECONDS, RELIEF_SECONDS
from ottla.broker.replication.replica_roles import AGAIN_SECONDS, HEIR_LOOK_SECONDS
from ottla.coordination.cluster.node_records import RegisterBrokerRecord
from ottla.coordination.cluster.records import PartitionChangeRecord, PartitionRecord, TopicRecord
from ottla.coordination.cluster.topic import LOST
from ottla.coordination.replication.fetch_session import Place
from ottla.kafka_id import text_of
from ottla.model import TopicPartition
from ottla.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log_config import LogConfig
from tests.broker.test_hosting import EPOCHS, HERE, ME, OTHER, THERE, THIRD, TOPIC, House
from tests.storage.batches import append
from tests.storage.lost_files import SMALL, cut, lose

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
    assert len(list(house.found().log.known_damages())) == 1


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


@pytest.fixture(params=["version: 0\n", f"version: 0\ntopic_id: {text_of(UUID(int=TOPIC.int ^ 1 << 64))}\n"])
def shut(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[House]:
    """The copy does not say of which topic it is, or names another one, as a bit has flipped there."""
    directory = DataDirectory.open(tmp_path, node_id=ME)
    append(directory.open_log(TopicPartition("t", 0), SMALL, now_ms=0, topic_id=TOPIC), b"a")
    directory.close()
    (tmp_path / "t-0" / "partition.metadata").write_text(request.param)
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
    house.hosting.begin()
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


def test_a_copy_that_a_crash_has_left_without_its_end_is_not_led_where_one_had_everything(
    torn: House, request: pytest.FixtureRequest
) -> None:
    killed(torn, OTHER, THIRD)
    assert (torn.led(), places(torn)) == ([], [LOST])
    torn.say(PartitionChangeRecord(0, TOPIC, leader=OTHER, isr=[OTHER], directories=[LOST, THERE, THERE]))
    assert (followed(torn).fetch_offset, places(torn)) == (request.node.callspec.params["torn"], [HERE])
    torn.say(PartitionChangeRecord(0, TOPIC, isr=[OTHER, ME], directories=[HERE, THERE, THERE]))
    assert torn.found().log.fallen_short is None


def test_who_had_everything_is_waited_for(torn: House) -> None:
    killed(torn, OTHER, there=False)
    for _ in range(3):
        torn.wait(HEIR_LOOK_SECONDS)
        assert (torn.led(), places(torn)) == ([], [])
    torn.say(RegisterBrokerRecord(OTHER, broker_epoch=EPOCHS[OTHER] + 1, fenced=False))
    torn.wait(HEIR_LOOK_SECONDS)
    assert (torn.led(), places(torn)) == ([], [LOST])


def test_if_who_had_everything_does_not_come_what_is_left_is_led(torn: House) -> None:
    killed(torn, OTHER, there=False)
    torn.wait(HEIR_SECONDS)
    assert (torn.led(), torn.found().log.fallen_short) == ([0], None)
    torn.say(RegisterBrokerRecord(OTHER, broker_epoch=EPOCHS[OTHER] + 1, fenced=False))
    torn.say(PartitionChangeRecord(0, TOPIC, isr=[ME, OTHER]))
    assert (torn.led(), places(torn)) == ([0], [])


def test_where_nobody_else_had_everything_it_is_led_at_once(torn: House) -> None:
    killed(torn)
    assert (torn.led(), places(torn)) == ([0], [])
