"""Three nodes of ours are restarted in turn while producers write and groups read. Every record is counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path

import pytest

from interop.java_writer import JavaWriter
from interop.reading_member import ReadingMember
from interop.test_cluster_replicas import read
from interop.transactor import Transactor
from interop.writer import Writer
from ottla import Admin, Cluster, NewTopic
from rivals.apache_kafka import fetch

NODES = (1, 2, 3)
SINGLE, WHOLE = ([f"{name}-{node}" for node in NODES] for name in ("single", "whole"))
"""The topics. Each node leads one of them."""
PROTOCOLS = "classic", "consumer"
REQUEST_MS = 2000


class Crowd:
    """Idempotent producers of librdkafka and Java, transactional producers, and a group of each protocol."""

    def __init__(self, servers: str, folder: Path) -> None:
        self.single = Writer(servers, SINGLE, request_timeout_ms=REQUEST_MS)
        self.whole = Transactor(servers, WHOLE, "whole", request_timeout_ms=REQUEST_MS)
        self.java = JavaWriter(servers, "java", folder, request_timeout_ms=REQUEST_MS)
        self.members = [ReadingMember(servers, SINGLE, each, request_timeout_ms=REQUEST_MS) for each in PROTOCOLS]

    def go_on(self) -> None:
        for go_on in (self.single.go_on, self.whole.go_on, self.java.go_on, *(each.go_on for each in self.members)):
            go_on()


@contextmanager
def at_work(cluster: Cluster, folder: Path) -> Iterator[Crowd]:
    """Run all clients, and at the end wait until the members have read all records."""
    crowd = Crowd(cluster.bootstrap_servers, folder)
    with ExitStack() as reading, ExitStack() as writing:
        for member in crowd.members:
            reading.enter_context(member)
        for writer in (crowd.single, crowd.whole, crowd.java):
            writing.enter_context(writer)
        crowd.go_on()
        yield crowd
        writing.close()
        for member in crowd.members:
            member.wait_until_read(crowd.single.count)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    fetch()
    layouts = [(node, *(each for each in NODES if each != node)) for node in NODES]
    with Cluster(group_min_session_timeout_ms=1000) as cluster, Admin(cluster.client_settings()) as admin:
        for topics in (SINGLE, WHOLE):
            alone = zip(topics, layouts, strict=True)
            admin.create_topics([NewTopic(topic, replica_assignments={0: layout}) for topic, layout in alone])
        admin.create_topics([NewTopic("java", replica_assignments=dict(enumerate(layouts)))])
        yield cluster


@pytest.mark.long
@pytest.mark.behaviour("B4", "B5")
def test_no_record_is_lost_or_repeated_while_all_nodes_restart_in_turn(cluster: Cluster, tmp_path: Path) -> None:
    with at_work(cluster, tmp_path) as crowd:
        for node in NODES:
            cluster.stop(node)
            crowd.go_on()
            cluster.start(node)
            crowd.go_on()
    assert crowd.single.failed == []
    for topics, isolation, count in (
        (SINGLE, "read_uncommitted", crowd.single.count),
        (WHOLE, "read_committed", crowd.whole.count),
    ):
        for topic in topics:
            assert read(cluster.bootstrap_servers, topic, isolation_level=isolation) == list(range(count))
    assert crowd.java.list_events("producer_send_error") == []
    by_partition = [read(cluster.bootstrap_servers, "java", partition=each) for each in range(len(NODES))]
    acknowledged = [number for _, _, number in crowd.java.list_events("producer_send_success")]
    assert all(numbers == sorted(numbers) for numbers in by_partition)
    assert sorted(chain.from_iterable(by_partition)) == sorted(acknowledged)
