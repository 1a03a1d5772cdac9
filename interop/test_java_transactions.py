"""Java's producer in short transactions, whose batches are in flight while partitions are taken into the transaction (KIP-890)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from interop.kafka_places import BROKER_PORT, KafkaPlace, give_both_roles
from interop.kafka_tools import Tools
from ottla import Admin, NewTopic, read_table
from ottla.errors import OttlaError
from rivals import apache_kafka as rival
from rivals.kafka_cluster import wait_for
from tests.broker.quorum_nodes import Place, new_hosts
from tests.cli.conftest import start

OURS, KAFKAS = "ottla", "kafka"
PARTITIONS = 6
RECORDS = 20_000
"""Of each transactional id."""
DELIVERY_MS = 60_000
"""Then Java's producer gives a batch up that is refused again and again, and its transaction with it."""
CLUSTERS = [
    pytest.param((OURS, OURS, OURS), 5, id="three of ours"),
    pytest.param((OURS, KAFKAS, OURS), 100, id="one of Kafka's between two of ours"),
]
"""Who makes the nodes, and for how many milliseconds a transaction takes records."""
NOT_OURS = ("--feature", "share.version=0", "--feature", "streams.version=0")
COORDINATION = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


class CombinedPlace(Place):
    """A node of ours that is a controller and a broker."""

    def start(self) -> None:
        """In a process of its own, which may not be ready yet."""
        self.process = start("broker", "--config", self.file)


@contextmanager
def running(folder: Path, makers: Sequence[str]) -> Iterator[str]:
    """Run a cluster; yields its bootstrap servers."""
    hosts = new_hosts(len(makers))
    places: list[KafkaPlace | CombinedPlace] = []
    for number, (maker, host) in enumerate(zip(makers, hosts, strict=True), 1):
        place = KafkaPlace(folder, number, host) if maker == KAFKAS else CombinedPlace(folder, number, host)
        give_both_roles(place, host)
        place.settings |= COORDINATION
        places.append(place)
    for place in places:
        place.knows(places)
    voters = ",".join(f"{each.node_id}@{each.address}:{each.voter.directory_id}" for each in places)
    for place in places:
        if isinstance(place, KafkaPlace):
            place.format_as(*NOT_OURS, "-I", voters)
        else:
            place.format([each.voter for each in places])
    servers = ",".join(f"{host}:{BROKER_PORT}" for host in hosts)
    with ExitStack() as undo:
        for place in places:
            undo.callback(place.kill)
            place.start()
        wait_for(lambda: brokers(servers) == len(places), "all brokers are in the cluster")
        yield servers


def brokers(servers: str) -> int:
    try:
        with Admin(bootstrap_servers=servers) as admin:
            return len(admin.describe_cluster().nodes)
    except OttlaError:
        return 0


def write(tools: Tools, servers: str, number: int, duration_ms: int) -> str:
    """Have one transactional id write in transactions; return what is wrong, "" if all was committed."""
    words = ["--topic", "t", "--num-records", RECORDS, "--record-size", 200, "--throughput", -1]
    words += ["--transactional-id", f"id-{number}", "--transaction-duration-ms", duration_ms]
    properties = {"bootstrap.servers": servers, "delivery.timeout.ms": DELIVERY_MS, "transaction.timeout.ms": 600_000}
    words += ["--command-property", *(f"{name}={value}" for name, value in properties.items())]
    said = tools.run("ProducerPerformance", *words)
    is_whole = said.status == 0 and f"{RECORDS} records sent" in said.text
    return "" if is_whole else f"id-{number}: {said.text[-1000:]}"


def write_all(folder: Path, makers: Sequence[str], ids: int, duration_ms: int) -> None:
    """Have one id after the other write, and count what is committed."""
    rival.fetch()
    with running(folder, makers) as servers, Admin(bootstrap_servers=servers) as admin, Tools() as tools:
        nodes = range(1, len(makers) + 1)
        layout = {index: (*nodes[index % 3 :], *nodes[: index % 3]) for index in range(PARTITIONS)}
        admin.create_topics([NewTopic("t", replica_assignments=layout)])
        failures = [failure for number in range(ids) if (failure := write(tools, servers, number, duration_ms))]
        assert failures == []
        table = read_table("t", bootstrap_servers=servers, isolation_level="read_committed")
        assert table.num_rows == ids * RECORDS


@pytest.mark.parametrize(("makers", "duration_ms"), CLUSTERS)
def test_no_batch_is_written_before_one_that_was_refused(
    tmp_path: Path, makers: Sequence[str], duration_ms: int
) -> None:
    write_all(tmp_path, makers, 8, duration_ms)


@pytest.mark.long
@pytest.mark.parametrize(("makers", "duration_ms"), CLUSTERS)
def test_none_of_many_transactional_ids_stands_still(tmp_path: Path, makers: Sequence[str], duration_ms: int) -> None:
    write_all(tmp_path, makers, 44, duration_ms)
