"""Brokers of a cluster with several `log.dirs`: another leads what was in a directory that failed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla import Producer
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.broker.cluster_nodes import BrokerPlace, counted, make_topic, partitions_of
from tests.broker.moving_replicas import committed, copies, find_directory, move
from tests.broker.quorum_nodes import Place, new_hosts
from tests.broker.wire import Wire
from tests.patience import eventually

pytestmark = pytest.mark.heavy

PARTITIONS = 4


def disk_of(folder: Path, broker: int, number: int) -> Path:
    return folder / f"data-{broker}-{number}"


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[list[BrokerPlace]]:
    """Two brokers with two directories each, and one controller; the metadata are in the first directory."""
    hosts = new_hosts(3)
    controller = Place(tmp_path, 1, hosts[0])
    controller.format([controller.voter])
    disks = {number: ",".join(str(disk_of(tmp_path, number, each)) for each in (1, 2)) for number in (2, 3)}
    places = [
        BrokerPlace(tmp_path, number, hosts[number - 1], [controller], log_dirs=disks[number]) for number in (2, 3)
    ]
    with controller.serving(), ExitStack() as undo:
        for each in places:
            undo.callback(each.kill)
            each.start()
        yield places


def led_by(broker: BrokerPlace, who: int) -> set[int]:
    return {each.partition_index for each in partitions_of(broker, "t") if each.leader_id == who}


def in_sync(broker: BrokerPlace) -> bool:
    return all(len(each.isr_nodes) == 2 for each in partitions_of(broker, "t"))


def failed_directories(broker: BrokerPlace) -> list[str]:
    with Wire(broker.address) as wire:
        results = wire.ask(DescribeLogDirsRequest(None)).results
    return [each.log_dir for each in results if each.error_code == ErrorCode.KAFKA_STORAGE_ERROR]


def test_partitions_of_a_failed_directory_get_other_leaders_and_lose_nothing(
    brokers: list[BrokerPlace], tmp_path: Path
) -> None:
    make_topic(brokers[0], CreatableTopic("t", PARTITIONS, 2))
    eventually(lambda: in_sync(brokers[0]))
    addresses = ",".join(each.address for each in brokers)
    with Producer(bootstrap_servers=addresses, acks="all") as producer:
        for number in range(200):
            producer.send("t", b"%d" % number, partition=number % PARTITIONS)
        producer.flush()
        lost = disk_of(tmp_path, 2, 2)
        held = {int(each.name[2:]) for each in lost.glob("t-*")}
        assert len(held) == PARTITIONS / 2
        shutil.rmtree(lost)
        eventually(lambda: not held & led_by(brokers[1], 2))
        for number in range(200, 400):
            producer.send("t", b"%d" % number, partition=number % PARTITIONS)
        producer.flush()
    assert led_by(brokers[1], 2) | led_by(brokers[1], 3) == set(range(PARTITIONS))
    assert failed_directories(brokers[0]) == [str(lost)]
    assert counted(addresses, "t", 400) == {b"%d" % number: 1 for number in range(400)}
    brokers[0].end()
    brokers[0].start()
    eventually(lambda: len(led_by(brokers[1], 2) | led_by(brokers[1], 3)) == PARTITIONS)
    assert held <= led_by(brokers[1], 3)
    assert not list(disk_of(tmp_path, 2, 1).glob("t-*")) or failed_directories(brokers[0]) in ([], [str(lost)])


def test_replicas_of_leader_and_follower_move_during_produces_and_the_controllers_are_informed(
    brokers: list[BrokerPlace], tmp_path: Path
) -> None:
    make_topic(brokers[0], CreatableTopic("t", 1, 2))
    eventually(lambda: in_sync(brokers[0]))
    addresses = ",".join(each.address for each in brokers)
    with Producer(bootstrap_servers=addresses, acks="all") as producer, ExitStack() as wires:
        written = 0
        for number, broker in zip((2, 3), brokers, strict=True):
            wire = wires.enter_context(Wire(broker.address))
            first, second = disk_of(tmp_path, number, 1), disk_of(tmp_path, number, 2)
            eventually(lambda wire=wire: find_directory(wire))  # type: ignore[misc]
            to = second if find_directory(wire) == first else first
            assert move(wire, "t", to) == [ErrorCode.NONE]
            while find_directory(wire) != to:
                producer.send("t", b"%d" % written).result()
                written += 1
    assert counted(addresses, "t", written) == {b"%d" % number: 1 for number in range(written)}
    assert move_and_kill(brokers[0], tmp_path) == [ErrorCode.NONE]
    eventually(lambda: in_sync(brokers[1]))
    assert committed(addresses) == [(number, b"%d" % number) for number in range(written)]
    logs = [each.read_bytes() for number in (2, 3) for each in tmp_path.glob(f"data-{number}-*/t-0/*.log")]
    assert len(logs) == 2
    assert logs[0] == logs[1]


def move_and_kill(broker: BrokerPlace, folder: Path) -> list[int]:
    """Kill a broker during its move and restart it: the move continues."""
    with Wire(broker.address) as wire:
        first, second = disk_of(folder, 2, 1), disk_of(folder, 2, 2)
        to = second if find_directory(wire) == first else first
        codes = move(wire, "t", to)
    broker.kill()
    broker.start()
    eventually(lambda: moved_to(broker, to))
    return codes


def moved_to(broker: BrokerPlace, to: Path) -> bool:
    with Wire(broker.address) as wire:
        return bool(copies(wire)) and find_directory(wire) == to
