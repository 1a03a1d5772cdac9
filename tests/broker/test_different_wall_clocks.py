"""Three nodes with wall clocks that differ by hours and jump: timeouts use monotonic clocks."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from ottla import Admin, Cluster, Consumer, NewTopic, Producer, TopicPartition
from tests.broker.cluster_nodes import counted
from tests.broker.in_sync import in_sync
from tests.patience import eventually

SHIFTING = """
import mmap, os, time
from struct import unpack
with open(os.path.join(os.environ["CALENDARS"], str(os.getpid())), "w+b") as file:
    file.truncate(8)
    shift = mmap.mmap(file.fileno(), 8)
true_ns, true_seconds = time.time_ns, time.time
time.time_ns = lambda: true_ns() + unpack("q", shift)[0]
time.time = lambda: true_seconds() + unpack("q", shift)[0] / 1e9
"""
"""A module that each Python process imports: a file named for the process has the offset of its wall clock in
nanoseconds.
"""
pytestmark = [pytest.mark.xdist_group("clocks apart"), pytest.mark.heavy]
MINUTE_S, HOUR_S = 60, 3600
SHIFTS_S = {1: 0, 2: 3 * HOUR_S, 3: -40 * MINUTE_S}
SESSION_RECORDS = 8
"""An active controller that has nothing to decide writes two a second: so many take longer than a session of 3 s."""


class Calendars:
    """Set the clock of a node."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self._folder = folder
        self.cluster = cluster

    def shift(self, node: int) -> None:
        """Have it be as wrong as it is to be; after a start it is right."""
        with open(self._folder / str(self.cluster.pid(node)), "r+b") as file:
            file.write((SHIFTS_S[node] * 10**9).to_bytes(8, "little", signed=True))


@pytest.fixture(scope="module")
def calendars(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Calendars]:
    folder = tmp_path_factory.mktemp("calendars")
    (folder / "sitecustomize.py").write_text(SHIFTING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        patch.setenv("CALENDARS", str(folder))
        with Cluster() as cluster:
            yield Calendars(folder, cluster)


def leaders(admin: Admin) -> list[tuple[int, int]]:
    """Return the leader and its epoch."""
    return [(each.leader, each.leader_epoch) for each in admin.describe_topics(["t"])["t"].partitions]


def watermark(admin: Admin) -> int:
    return admin.describe_metadata_quorum().high_watermark


@pytest.mark.behaviour("B5")
def test_nodes_with_different_wall_clocks_elect_leaders_and_replicate(calendars: Calendars) -> None:
    cluster = calendars.cluster
    settings = cluster.client_settings()
    with Admin(settings) as admin, Producer(settings, acks="all") as producer:
        layouts = {node - 1: (node, *(each for each in SHIFTS_S if each != node)) for node in SHIFTS_S}
        configs = {"message.timestamp.type": "LogAppendTime"}
        admin.create_topics([NewTopic("t", replica_assignments=layouts, configs=configs)])
        written: list[bytes] = []

        def write(word: str) -> None:
            for partition in layouts:
                written.append(b"%s %d" % (word.encode(), partition))
                producer.send("t", written[-1], partition=partition).result(60)

        write("before")
        before, begun = leaders(admin), watermark(admin)
        for node in cluster.nodes:
            calendars.shift(node)
        write("apart")
        eventually(lambda: watermark(admin) > begun + SESSION_RECORDS)
        assert leaders(admin) == before, "nobody was taken for dead"
        assert [round(each / HOUR_S, 1) for each in wrong_by(settings)] == [0, 3, -0.7]
        for node in cluster.nodes:
            cluster.kill(node)
            write(f"without {node}")
            cluster.start(node)
            calendars.shift(node)
            eventually(lambda: in_sync(admin, "t") == set(cluster.nodes))
    assert counted(cluster.bootstrap_servers, "t", len(written)) == dict.fromkeys(written, 1)


@pytest.mark.behaviour("B4")
def test_a_transaction_and_a_group_continue_at_a_coordinator_with_another_wall_clock(calendars: Calendars) -> None:
    cluster = calendars.cluster
    settings = cluster.client_settings()
    member = {"group.id": "g", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    with (
        Producer(settings, transactional_id="transactions") as producer,
        Consumer({**settings, **member, "isolation.level": "read_committed"}) as consumer,
    ):
        consumer.subscribe(["whole"])
        producer.init_transactions()
        found: Counter[bytes] = Counter()
        for node in cluster.nodes:
            calendars.shift(node)
        for node in cluster.nodes:
            values = [b"%s %d" % (word, node) for word in (b"before", b"after")]
            with producer.transaction():
                producer.send("whole", values[0]).result(60)
                cluster.kill(node)
                producer.send("whole", values[1]).result(60)
            eventually(partial(has_read, consumer, found, values))
            consumer.commit()
            cluster.start(node)
            calendars.shift(node)
    assert found == {b"%s %d" % (word, node): 1 for word in (b"before", b"after") for node in cluster.nodes}


def has_read(consumer: Consumer, found: Counter[bytes], values: list[bytes]) -> bool:
    """True if all records have been found; reads some more."""
    found.update(each.value or b"" for each in consumer.poll(0.2))
    return found.keys() >= {*values}


def wrong_by(settings: dict[str, str]) -> list[float]:
    """By how many seconds the newest record of each partition differs from now."""
    places = [TopicPartition("t", number) for number in range(3)]
    newest: dict[int, float] = {}
    with Consumer(settings) as consumer:
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < ends[each] for each in places):
            newest |= {each.partition: each.timestamp / 1000 - time.time() for each in consumer.poll(1)}
    return [newest[number] for number in range(3)]
