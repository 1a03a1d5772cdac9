"""Three broker processes, of which one restarts with a damaged replica: all replicas are equal after a while, without
an effect on readers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla import Admin, Consumer, Producer
from ottla.model import TopicPartition
from ottla.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from tests.broker.cluster_nodes import BrokerPlace, is_led, make_topic
from tests.broker.quorum_nodes import Place, new_hosts
from tests.broker.test_damage_reports import magic
from tests.patience import PATIENCE, eventually
from tests.storage.lost_files import lose

pytestmark = [pytest.mark.xdist_group("damaged copies of nodes"), pytest.mark.heavy]
RECORDS = 120
PADDING = bytes(50_000)
T0 = TopicPartition("t", 0)


class Nodes:
    """A controller, brokers 2, 3 and 4, and the topic t of one partition, which 2 had best lead."""

    def __init__(self, path: Path) -> None:
        hosts = new_hosts(4)
        self.path = path
        self.controller = Place(path, 1, hosts[0])
        self.controller.format([self.controller.voter])
        self.brokers = [BrokerPlace(path, 2 + each, hosts[1 + each], [self.controller]) for each in range(3)]
        self.said: dict[int, str] = {}
        """By broker: its log, of the run that ended last."""

    @property
    def address(self) -> str:
        return ",".join(each.address for each in self.brokers)

    def folder(self, broker: int) -> Path:
        return self.path / f"data-{broker}" / "t-0"

    def place(self, broker: int) -> BrokerPlace:
        return self.brokers[broker - 2]

    def end(self, broker: int) -> None:
        """SIGTERM."""
        process = self.place(broker).process
        assert process is not None
        process.terminate()
        _, self.said[broker] = process.communicate(timeout=PATIENCE)
        self.place(broker).process = None

    def files(self, broker: int) -> dict[str, bytes]:
        return {each.name: each.read_bytes() for each in sorted(self.folder(broker).glob("*.log"))}

    def are_the_same(self) -> bool:
        try:
            return self.files(2) == self.files(3) == self.files(4)
        except FileNotFoundError:
            return False  # It was cut off just now.

    def elect_the_preferred(self) -> None:
        with Admin(bootstrap_servers=self.address) as admin:
            admin.elect_leaders("PREFERRED", [T0])


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path)
    with nodes.controller.serving(), ExitStack() as undo:
        for each in nodes.brokers:
            undo.callback(each.kill)
            each.start()
        small = CreatableTopicConfig("segment.bytes", str(1 << 20))
        topic = CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [2, 3, 4])], [small])
        make_topic(nodes.place(2), topic)
        with Producer(bootstrap_servers=nodes.address) as producer:
            for number in range(RECORDS):
                producer.send("t", b"%d" % number + PADDING, partition=0)
        eventually(lambda: is_led(nodes.place(4), "t", 2, in_sync=3))
        yield nodes


class Reader:
    """Read the topic from its start again and again until stopped."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stop = threading.Event()
        self.rounds = 0
        self.errors: list[str] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with Consumer(bootstrap_servers=self._address) as consumer:
            consumer.assign([T0])
            while not self._stop.is_set():
                consumer.seek_to_beginning(T0)
                self._read(consumer)

    def _read(self, consumer: Consumer) -> None:
        found: list[bytes | None] = []
        while len(found) < RECORDS and not self._stop.is_set():
            try:
                found += [each.value for each in consumer.poll(0.2)]
            except Exception as error:
                self.errors.append(repr(error))
                return
        if len(found) == RECORDS:
            self.rounds += 1
            if found != [b"%d" % number + PADDING for number in range(RECORDS)]:
                self.errors.append("other records than were written")

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def lose_the_middle(folder: Path) -> None:
    """A segment's file, and what belongs to it."""
    names = sorted(folder.glob("*.log"))
    lose(folder, int(names[len(names) // 2].stem))


def flip(folder: Path) -> None:
    """A bit in the header of the first batch of an old segment."""
    names = sorted(folder.glob("*.log"))
    path = names[len(names) // 2]
    path.write_bytes(magic(bytearray(path.read_bytes()), 0, 0))


@pytest.mark.behaviour("B2")
@pytest.mark.parametrize("damage", [lose_the_middle, flip])
def test_a_damaged_replica_is_repaired_without_an_effect_on_readers(
    nodes: Nodes, damage: Callable[[Path], None]
) -> None:
    nodes.end(2)
    damage(nodes.folder(2))
    reader = Reader(nodes.address)
    try:
        nodes.place(2).start()
        eventually(lambda: is_led(nodes.place(4), "t", in_sync=3))
        nodes.elect_the_preferred()
        eventually(nodes.are_the_same)
        rounds = reader.rounds
        eventually(lambda: reader.rounds > rounds + 2)
        eventually(lambda: is_led(nodes.place(4), "t", in_sync=3))
    finally:
        reader.stop()
    assert reader.errors == []
    nodes.end(2)
    assert nodes.said[2].count("t-0 is truncated from its end at") == 1
    assert "CORRUPT" not in nodes.said[2]


def test_a_damaged_replica_alone_in_the_isr_leads_until_another_joins_and_is_then_repaired(nodes: Nodes) -> None:
    for broker in (4, 3, 2):
        nodes.end(broker)
    lose_the_middle(nodes.folder(2))
    nodes.place(2).start()
    eventually(lambda: is_led(nodes.place(2), "t", 2))
    for broker in (3, 4):
        nodes.place(broker).start()
    eventually(lambda: is_led(nodes.place(4), "t", in_sync=3))
    eventually(nodes.are_the_same)
    nodes.end(2)
    assert "t-0 is damaged on this broker: it is intact on other replicas of the ISR" in nodes.said[2]
    assert nodes.said[2].count("t-0 is truncated from its end at") == 1
