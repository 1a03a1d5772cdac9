"""Java's producer in short transactions: batches are in flight while partitions are added (KIP-890)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from interop.kafka_places import BROKER_PORT, REFERENCE, CombinedPlace, KafkaPlace, give_both_roles
from interop.kafka_tools import Tools
from ottla import Admin, NewTopic, read_table
from ottla.errors import OttlaError
from rivals import apache_kafka as rival
from rivals.kafka_cluster import wait_for
from tests.broker.quorum_nodes import new_hosts

OURS, KAFKAS = "ottla", "kafka"
PARTITIONS = 6
RECORDS = 20_000
"""The number of transactions per transactional id."""
DELIVERY_MS = 60_000
"""The delivery timeout of Java's producer. A batch that is rejected until then fails, and so does its transaction."""
CLUSTERS = [
    pytest.param((OURS, OURS, OURS), 5, id="three of ours"),
    pytest.param((OURS, KAFKAS, OURS), 100, id="one of Kafka's between two of ours"),
]
"""The kind of cluster, and the time in milliseconds for which each transaction sends records."""
COORDINATION = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


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
            place.format_as("-I", voters)
        else:
            place.format([each.voter for each in places], REFERENCE.release)
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
    """Write transactions with one transactional id. Returns an error, or "" if all were committed."""
    words = ["--topic", "t", "--num-records", RECORDS, "--record-size", 200, "--throughput", -1]
    words += ["--transactional-id", f"id-{number}", "--transaction-duration-ms", duration_ms]
    properties = {"bootstrap.servers": servers, "delivery.timeout.ms": DELIVERY_MS, "transaction.timeout.ms": 600_000}
    words += ["--command-property", *(f"{name}={value}" for name, value in properties.items())]
    said = tools.run("ProducerPerformance", *words)
    is_whole = said.status == 0 and f"{RECORDS} records sent" in said.text
    return "" if is_whole else f"id-{number}: {said.text[-1000:]}"


def write_all(folder: Path, makers: Sequence[str], ids: int, duration_ms: int) -> None:
    """Write with each transactional id in turn, and count the committed records."""
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
def test_no_batch_is_written_before_an_earlier_rejected_one(
    tmp_path: Path, makers: Sequence[str], duration_ms: int
) -> None:
    write_all(tmp_path, makers, 8, duration_ms)


@pytest.mark.long
@pytest.mark.parametrize(("makers", "duration_ms"), CLUSTERS)
def test_none_of_many_transactional_ids_is_blocked(tmp_path: Path, makers: Sequence[str], duration_ms: int) -> None:
    write_all(tmp_path, makers, 44, duration_ms)
