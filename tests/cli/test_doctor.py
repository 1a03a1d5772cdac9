"""`ottla doctor`: facts become findings, and real brokers become facts."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, Cluster, Consumer, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from ottla.cli.doctor import remote as doctor_remote
from ottla.cli.doctor.cluster import (
    GroupFacts,
    TopicFacts,
    TransactionFacts,
    group_findings,
    partition_finding,
    topic_findings,
    transaction_findings,
)
from ottla.cli.doctor.data import DataFacts, data_findings
from ottla.cli.doctor.findings import Finding, few, ok, problem, summary, warning
from ottla.cli.doctor.machine import (
    MachineFacts,
    Requirement,
    disk_finding,
    extras_findings,
    files_finding,
    fits,
    java_finding,
    loops_finding,
    machine_findings,
)
from ottla.cli.doctor.network import (
    AddressFacts,
    advertised_findings,
    bootstrap_finding,
    clock_finding,
    kind_finding,
    talk_finding,
)
from ottla.cli.main import main
from ottla.free_ports import free_port
from ottla.model import PartitionInfo
from tests.cli.test_mistakes import answer_in_http
from tests.patience import eventually

GIB = 2**30
Run = Callable[..., tuple[int, dict[str, list[dict[str, Any]]]]]


def partition(
    topic: str = "t", number: int = 0, *, leader: int = 1, replicas: tuple[int, ...] = (1, 2, 3), isr: Any = None
) -> PartitionInfo:
    return PartitionInfo(topic, number, leader, 0, replicas, replicas if isr is None else isr)


def topic(
    name: str, copies: int = 3, in_sync: int | None = None, *, internal: bool = False, **configs: str
) -> TopicFacts:
    replicas = tuple(range(1, copies + 1))
    isr = replicas[: copies if in_sync is None else in_sync]
    named = {key.replace("_", "."): value for key, value in configs.items()}
    return TopicFacts(name, internal, [partition(name, replicas=replicas, isr=isr)], named)


def reached(host: str, *addresses: str) -> AddressFacts:
    return AddressFacts(host, 9092, addresses)


@pytest.mark.parametrize(
    ("finding", "level", "seen", "remedy"),
    [
        (loops_finding(29, []), "ok", "all 29 hot loops are compiled", None),
        (loops_finding(29, ["a", "b"]), "warning", "2 of 29 hot loops are not compiled", "install a C compiler"),
        (java_finding(17), "ok", "Spark will use Java 17", None),
        (java_finding("there is no java on the PATH; install it"), "warning", "no java on the PATH", "install it"),
        (files_finding(1024, 1048576), "ok", "may open 1024 files, and a broker raises that to 1048576", None),
        (files_finding(float("inf"), float("inf")), "ok", "may open inf files", None),
        (files_finding(256, 1024), "warning", "may open 1024 files and no more", "ulimit -n 65536"),
        (disk_finding("disk", "/d", 60 * GIB, 1000 * GIB), "ok", "of 1.1 TB are free for /d", None),
        (disk_finding("disk", "/d", 30 * GIB, 1000 * GIB), "warning", "32.2 GB of 1.1 TB are free", "make room"),
        (disk_finding("disk", "/d", 30 * GIB, 60 * GIB), "ok", "are free for /d", None),
        (disk_finding("disk", "/d", 2 * GIB, 4 * GIB), "warning", "2.1 GB of 4.3 GB", "make room"),
        (disk_finding("disk", "/d", 10**8, GIB), "problem", "100.0 MB of 1.1 GB", "make room"),
        (
            bootstrap_finding(AddressFacts("kafak", 9092, unresolved="Name or service not known"), is_default=False),
            "problem",
            "the name 'kafak' stands for no address: Name or service not known",
            "see to DNS",
        ),
        (
            bootstrap_finding(AddressFacts("h", 9092, ["10.0.0.1"], unreached="connection refused"), is_default=False),
            "problem",
            "nobody answers at h:9092: connection refused",
            "no firewall",
        ),
        (
            bootstrap_finding(AddressFacts("h", 9092, ["::1"], unreached="connection refused"), is_default=True),
            "warning",
            "where brokers are unless somebody says otherwise",
            "ottla broker",
        ),
        (bootstrap_finding(reached("::1", "::1"), is_default=False), "ok", "[::1]:9092 (::1) takes connections", None),
        (talk_finding(None, "SSL", is_default=False), "ok", "over SSL", None),
        (
            talk_finding("not a Kafka broker: h:1 (from bootstrap.servers): it speaks HTTP: not Kafka's protocol; take the port of a broker", "PLAINTEXT", is_default=False),
            "problem",
            "it speaks HTTP: not Kafka's protocol",
            "take the port of a broker",
        ),
        (
            talk_finding("h:1 (from bootstrap.servers): this port of the broker asks for a login: set security.protocol=SASL_SSL and sasl.mechanism=PLAIN", "PLAINTEXT", is_default=False),
            "problem",
            "this port of the broker asks for a login",
            "set security.protocol=SASL_SSL and sasl.mechanism=PLAIN",
        ),
        (talk_finding("no answer", "SSL", is_default=True), "warning", "no answer", "security.protocol is that listener's"),
        (kind_finding(is_ottla=True, metadata_version=30), "ok", "it is Ottla, and runs metadata.version 30, Kafka 4.3's", None),
        (kind_finding(is_ottla=False, metadata_version=17), "ok", "it is Apache Kafka or its like, and runs metadata.version 17, Kafka 3.7's", None),
        (kind_finding(is_ottla=None, metadata_version=None), "ok", "no metadata.version, as before KRaft", None),
        (clock_finding(0.2, 0.1), "ok", "agree within 0.3 s", None),
        (clock_finding(-0.5, 5.0), "ok", "agree within 5.5 s", None),
        (clock_finding(-3.0, 0.1), "warning", "3.0 s behind this machine's", "NTP"),
        (clock_finding(120.0, 0.1), "problem", "120.0 s ahead of this machine's", "NTP"),
    ],
)  # fmt: skip
def test_a_fact_becomes_a_finding(finding: Finding, level: str, seen: str, remedy: str | None) -> None:
    assert finding.level == level
    assert seen in finding.seen
    assert finding.remedy is None if remedy is None else remedy in str(finding.remedy)


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        (partition_finding([partition()]), [("ok", "1 partition, each with a leader")]),
        (partition_finding([partition(leader=-1, isr=())]), [("problem", "1 partition without a leader: t-0")]),
        (partition_finding([partition(isr=(1, 2))]), [("warning", "1 partition with copies that are behind or away: t-0")]),
        (partition_finding([partition(leader=2)]), [("ok", "1 partition, each")]),
        (topic_findings([topic("t", min_insync_replicas="2")], 3, refuses=True), [("ok", "1 topic, with copies")]),
        (topic_findings([], 3, refuses=True), [("ok", "0 topics")]),
        (topic_findings([topic("t", 2, min_insync_replicas="3")], 3, refuses=True), [("problem", "more than there are copies: t (3 of 2); acks=all is always refused")]),
        (topic_findings([topic("t", 2, min_insync_replicas="3")], 3, refuses=False), [("warning", "others take it with fewer copies")]),
        (topic_findings([topic("t", 3, 1, min_insync_replicas="2")], 3, refuses=True), [("problem", "refused now: t (1 of 2)")]),
        (topic_findings([topic("t", 3, min_insync_replicas="3")], 3, refuses=True), [("warning", "one broker that is away stops acks=all: t")]),
        (topic_findings([topic("t", 1)], 3, refuses=True), [("warning", "1 topic with one copy in a cluster of 3 brokers: t")]),
        (topic_findings([topic("t", 1, min_insync_replicas="1")], 2, refuses=True), [("ok", "1 topic")]),
        (topic_findings([topic("t", retention_ms="60000")], 3, refuses=True), [("warning", "within the hour: t (retention.ms=60000)")]),
        (topic_findings([topic("t", retention_ms="60000", cleanup_policy="compact")], 3, refuses=True), [("ok", "1 topic")]),
        (topic_findings([topic("t", retention_ms="60000", cleanup_policy="compact,delete")], 3, refuses=True), [("warning", "within the hour")]),
        (topic_findings([topic("t", retention_ms="60000", internal=True)], 3, refuses=True), [("ok", "1 topic")]),
        (topic_findings([topic("t", retention_ms="-1")], 3, refuses=True), [("ok", "1 topic")]),
        (group_findings([GroupFacts("g", "Stable", lag=10)]), [("ok", "1 group, none stuck")]),
        (group_findings([GroupFacts("g", "PreparingRebalance", is_stuck=True)]), [("warning", "that they were looked at: g (PreparingRebalance)")]),
        (group_findings([GroupFacts("g", "Empty", lag=1234)]), [("warning", "without members, and behind: g (1,234 behind)")]),
        (group_findings([GroupFacts("g", "Empty")]), [("ok", "1 group")]),
        (group_findings([GroupFacts("g", "Empty")], 3), [("warning", "only the first 1 groups were looked at, not 3 more")]),
        (group_findings([GroupFacts("g", "Stable", lost=7)]), [("warning", "before these had read them: g (7)")]),
        (transaction_findings([], []), [("ok", "0 transactions under way")]),
        (transaction_findings([TransactionFacts("t", 1_000, 60_000)], []), [("ok", "1 transaction under way")]),
        (transaction_findings([TransactionFacts("t", 400_000, 900_000)], []), [("warning", "open for long, and readers of committed records wait: t (400 s)")]),
        (transaction_findings([TransactionFacts("t", 400_000, 60_000)], []), [("problem", "longer than their timeout: t (400 s)")]),
        (transaction_findings([], ["t-0"]), [("problem", "that no coordinator will end keep readers of committed records waiting: t-0")]),
        (data_findings(DataFacts("/d", unreadable="/d holds no logs")), [("problem", "/d holds no logs")]),
        (data_findings(DataFacts("/d", free=10**12, total=10**13, partitions=2, size=5_000)), [("ok", "are free for /d"), ("ok", "/d is whole: 2 partitions, 5.0 kB")]),
        (data_findings(DataFacts("/d", free=10**12, total=10**13, faults=["x: torn"], live=True)), [("ok", "are free"), ("problem", "1 fault in /d: x: torn")]),
        (data_findings(DataFacts("/d", free=10**12, total=10**13, closed=False)), [("ok", "are free"), ("ok", "is whole"), ("warning", "did not end in order")]),
    ],
)  # fmt: skip
def test_facts_become_findings(findings: list[Finding], expected: list[tuple[str, str]]) -> None:
    assert [each.level for each in findings] == [level for level, _ in expected]
    assert all(seen in each.seen for each, (_, seen) in zip(findings, expected, strict=True))
    assert all(bool(each.remedy) == (each.level != "ok") for each in findings)


LOCAL, NEAR = reached("localhost", "127.0.0.1"), reached("kafka.example.org", "10.0.0.1")


@pytest.mark.parametrize(
    ("broker", "asked", "expected"),
    [
        (LOCAL, LOCAL, None),
        (NEAR, NEAR, None),
        (NEAR, LOCAL, None),
        (LOCAL, NEAR, "broker 1 calls itself localhost:9092, which is every client's own machine"),
        (AddressFacts("kafka", 9092, unresolved="Name or service not known"), LOCAL, "is it the name of a container?"),
        (
            AddressFacts("b.example.org", 9092, unresolved="unknown"),
            LOCAL,
            "where it is not reached from here: unknown",
        ),
        (AddressFacts("127.0.0.1", 9093, ["127.0.0.1"], unreached="connection refused"), LOCAL, "connection refused"),
    ],
)
def test_what_a_broker_calls_itself_must_lead_to_it(
    broker: AddressFacts, asked: AddressFacts, expected: str | None
) -> None:
    (found,) = advertised_findings({1: broker}, [asked])
    assert found.level == ("ok" if expected is None else "problem")
    assert expected is None or expected in found.seen
    assert expected is None or "set advertised.listeners of broker 1" in str(found.remedy)


def test_extras_are_told_with_their_versions_and_one_that_does_not_go_is_a_warning() -> None:
    arrow = Requirement("pyarrow", "<27,>=17", "26.0.1")
    old = Requirement("pandas", ">=2.2,<3", "1.5")
    first, second = extras_findings({"arrow": [arrow], "pandas": [arrow, old], "mysql": [Requirement("p", "", None)]})
    assert first == ok("extras", "arrow, pandas (pandas 1.5, pyarrow 26.0.1); not installed: mysql")
    assert second == warning("extras", "pandas is 1.5, and ottla[pandas] needs >=2.2,<3", "pip install 'ottla[pandas]'")
    assert extras_findings({})[0].seen == "none is installed"


@pytest.mark.parametrize(
    ("version", "bounds", "expected"),
    [
        ("26.0.1", "<27,>=17", True),
        ("27.0", "<27,>=17", False),
        ("27.0", "<=27", True),
        ("4.2.0.dev1", ">=4.2", True),
        ("0.0.3", "==0.0.3", True),
        ("0.0.4", "==0.0.3", False),
        ("1.0", "!=1", False),
        ("2", ">1.9", True),
        ("1", "", True),
    ],
)
def test_versions_lie_within_bounds_or_not(version: str, bounds: str, expected: bool) -> None:
    assert fits(version, bounds) == expected


def test_a_machine_without_spark_needs_no_java() -> None:
    facts = MachineFacts("3.12.1", 29, [], {}, None, (1024, 65536))
    assert [each.check for each in machine_findings(facts)] == ["python", "hot loops", "extras", "open files"]


def test_many_names_are_few_and_a_count() -> None:
    assert few("abc") == "a, b, c"
    assert few("abcdefg") == "a, b, c, d, e and 2 more"
    assert summary([ok("a", "b"), warning("a", "b", "c"), problem("a", "b", "c")]) == "1 problem, 1 warning, 1 ok"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """What the doctor finds, by what was looked at."""

    def run_it(*words: object) -> tuple[int, dict[str, list[dict[str, Any]]]]:
        status = main(["doctor", *map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert err == ""
        found: dict[str, list[dict[str, Any]]] = {}
        for each in json.loads(out):
            found.setdefault(each["check"], []).append(each)
        return status, found

    return run_it


def levels(found: dict[str, list[dict[str, Any]]], *checks: str) -> list[str]:
    return [each["level"] for check in checks for each in found.get(check, ())]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_a_broker_that_is_well_gives_no_problem(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data"
    with Broker(data_dir=path, process=True) as broker:  # a lock of this process itself is not seen
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 2)])
        status, found = run("--bootstrap-server", broker.bootstrap_servers, "--data-dir", path)
    assert status == 0, found
    ways = ("data", "bootstrap", "protocol", "broker", "advertised", "clock", "partitions", "topics")
    assert set(levels(found, *ways, "groups", "transactions")) == {"ok"}, found
    assert "it is Ottla" in found["broker"][0]["seen"]
    assert "2 partitions, each with a leader" in found["partitions"][0]["seen"]


def test_for_people_a_finding_is_a_line_and_the_last_counts_them(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--bootstrap-server", broker.bootstrap_servers]) == 0
    *lines, empty, last = capsys.readouterr().out.splitlines()
    assert all(line.split()[0] in ("ok", "warning") for line in lines)
    assert (empty, last.startswith("0 problems, ")) == ("", True)


def test_topics_groups_and_transactions_that_are_not_well_are_named(
    run: Run, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = broker.bootstrap_servers
    short, never = {"retention.ms": "60000"}, {"min.insync.replicas": "2"}
    place = TopicPartition("short", 0)
    with Admin(bootstrap_servers=at) as admin, Producer(bootstrap_servers=at) as producer:
        admin.create_topics([NewTopic("short", 1, configs=short), NewTopic("never", 1, configs=never)])
        for number in range(10):
            producer.send("short", b"%d" % number)
        producer.flush()
        admin.alter_consumer_group_offsets("left", {place: OffsetAndMetadata(1)})
        admin.delete_records({place: 4})
        with Producer(bootstrap_servers=at, transactional_id="billing") as open_one:
            open_one.init_transactions()
            open_one.begin_transaction()
            open_one.send("short", b"open")
            open_one.flush()
            monkeypatch.setattr("ottla.cli.doctor.cluster.LONG_MS", -1)
            status, found = run("--bootstrap-server", at)
            open_one.abort_transaction()
    assert status == 1
    assert levels(found, "topics") == ["problem", "warning"]
    assert "more than there are copies: never (2 of 1); acks=all is always refused" in found["topics"][0]["seen"]
    assert "short (retention.ms=60000)" in found["topics"][1]["seen"]
    left, lost = (each["seen"] for each in found["groups"])
    assert left == "without members, and behind: left (10 behind)"
    assert lost == "records were deleted before these had read them: left (3)"
    assert levels(found, "transactions") == ["warning"]
    assert "billing (" in found["transactions"][0]["seen"]


def test_a_group_that_does_not_come_to_rest_is_stuck(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_remote, "STUCK_SECONDS", 0.5)
    with Broker(group_initial_rebalance_delay_ms=600_000) as broker, Admin(broker.client_settings()) as admin:
        admin.create_topics([NewTopic("orders")])
        with Consumer(broker.client_settings(), group_id="waiting") as consumer:
            consumer.subscribe(["orders"])

            def is_rebalancing() -> bool:
                consumer.poll(0.05)
                return any(each.state == "PreparingRebalance" for each in admin.list_consumer_groups())

            eventually(is_rebalancing)
            _, found = run("--bootstrap-server", broker.bootstrap_servers)
    assert (
        found["groups"][0]["seen"] == "rebalancing all the time that they were looked at: waiting (PreparingRebalance)"
    )


def test_a_broker_that_calls_itself_what_leads_nowhere_is_a_problem(run: Run) -> None:
    port, nowhere = free_port(), free_port()
    settings: dict[str, Any] = {"advertised_listeners": f"PLAINTEXT://127.0.0.1:{nowhere}"}
    with Broker(listen=f"127.0.0.1:{port}", **settings):
        status, found = run("--bootstrap-server", f"127.0.0.1:{port}", "--set", "default.api.timeout.ms=1000")
    assert status == 1
    assert levels(found, "bootstrap", "protocol", "advertised") == ["ok", "ok", "problem"]
    seen = found["advertised"][0]["seen"]
    assert seen.startswith(f"broker 1 calls itself 127.0.0.1:{nowhere}, where it is not reached from here")
    assert "mend that first" in found["cluster"][0]["remedy"]


def test_who_else_may_answer_is_told(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer_in_http, args=(listener,), daemon=True).start()
        status, found = run("--bootstrap-server", f"127.0.0.1:{listener.getsockname()[1]}")
        listener.shutdown(socket.SHUT_RDWR)
    assert (status, levels(found, "protocol")) == (1, ["problem"])
    assert "it speaks HTTP" in found["protocol"][0]["seen"]
    assert "advertised" not in found
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", users={"alice": "s3cret"}) as broker:
        _, found = run("--bootstrap-server", broker.bootstrap_servers)
        assert found["protocol"][0]["seen"] == "this port of the broker asks for a login"
        assert found["protocol"][0]["remedy"].startswith("set security.protocol=SASL_PLAINTEXT")
    _, found = run("--bootstrap-server", f"127.0.0.1:{free_port()}")
    assert "connection refused" in found["bootstrap"][0]["seen"]
    status, found = run("--bootstrap-server", "no-such-host.invalid:9092")
    assert (status, levels(found, "bootstrap")) == (1, ["problem"])
    assert "the name 'no-such-host.invalid' stands for no address" in found["bootstrap"][0]["seen"]


def test_what_nobody_allows_is_a_warning_and_the_rest_is_looked_at(run: Run) -> None:
    settings: dict[str, Any] = {"authorizer_class_name": "standard", "super_users": "User:admin"}
    with Broker(**settings) as broker:
        status, found = run("--bootstrap-server", broker.bootstrap_servers)
    assert status == 0
    denied = [each for some in found.values() for each in some if "could not be looked at" in each["seen"]]
    assert denied
    assert all("ottla acls create" in each["remedy"] for each in denied)
    assert levels(found, "bootstrap", "protocol", "advertised") == ["ok"] * 3


def test_a_cluster_with_a_node_away_has_copies_that_are_behind(run: Run) -> None:
    lenient = {"min.insync.replicas": "1"}  # of which the cluster's default is 2
    with Cluster() as cluster, Admin(cluster.client_settings()) as admin:
        admin.create_topics([NewTopic("single", 3, 1, lenient), NewTopic("three", 3, 3)])
        status, found = run("--bootstrap-server", cluster.bootstrap_servers)
        assert (status, levels(found, "advertised", "partitions")) == (0, ["ok", "ok"])
        assert [each["seen"] for each in found["topics"]] == ["1 topic with one copy in a cluster of 3 brokers: single"]
        cluster.kill(3)
        found = until(run, cluster.addresses[1], ["problem", "warning"])
    assert "1 partition without a leader: single-" in found["partitions"][0]["seen"]
    assert "with copies that are behind or away: three-0" in found["partitions"][1]["seen"]


def until(run: Run, address: str, expected: list[str]) -> dict[str, list[dict[str, Any]]]:
    """What is found when partitions have come to be so; brokers hear of one that is gone one after the other."""
    seen: list[dict[str, list[dict[str, Any]]]] = []

    def is_so() -> bool:
        status, found = run("--bootstrap-server", address)
        seen.append(found)
        return levels(found, "partitions") == expected and status == 1

    eventually(is_so)
    return seen[-1]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory of a broker that has ended, with some records."""
    path = tmp_path / "data"
    with Broker(data_dir=path) as broker, Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for _ in range(3):
            producer.send("orders", b"v" * 5000)
            producer.flush()
    return path


AWAY = ("--bootstrap-server", "no-such-host.invalid:9092")


def of_data(run: Run, data: Path, *words: str) -> list[tuple[str, str]]:
    return [(each["level"], each["seen"]) for each in run(*AWAY, "--data-dir", data, *words)[1]["data"]]


def test_a_directory_that_is_whole_is_told_so(run: Run, data: Path) -> None:
    ((level, seen),) = of_data(run, data)
    assert (level, "by headers alone" in seen) == ("ok", True)
    ((level, seen),) = of_data(run, data, "--verify")
    assert (level, "by every byte" in seen) == ("ok", True)


def test_headers_show_a_torn_end_and_every_byte_shows_the_rest(run: Run, data: Path) -> None:
    (log,) = data.glob("orders-0/*.log")
    whole = log.read_bytes()
    log.write_bytes(whole[:-100])
    ((level, seen),) = of_data(run, data)
    assert (level, "is torn" in seen, str(log) in seen) == ("problem", True, True)
    log.write_bytes(whole[:3000] + b"!" + whole[3001:])
    assert of_data(run, data)[0][0] == "ok"
    assert of_data(run, data, "--verify")[0][0] == "problem"


def test_offsets_that_go_back_and_files_that_cannot_be_read_are_faults(run: Run, data: Path) -> None:
    (log,) = data.glob("orders-0/*.log")
    whole = log.read_bytes()
    log.write_bytes(whole + whole)
    assert "and 3 was due" in of_data(run, data)[0][1]
    log.write_bytes(whole)
    (data / "replication-offset-checkpoint").write_text("nonsense")
    assert of_data(run, data)[0][0] == "problem"


def test_after_a_crash_a_torn_end_is_no_damage(run: Run, data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    (log,) = data.glob("orders-0/*.log")
    log.write_bytes(log.read_bytes()[:-100])
    assert [level for level, _ in of_data(run, data)] == ["ok", "warning"]


def test_of_several_directories_one_tells_the_ids_of_topics_for_all(run: Run, data: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    for name in ("meta.properties", ".kafka_cleanshutdown"):
        shutil.copy(data / name, second)
    shutil.move(data / "orders-0", second)
    metadata = second / "orders-0" / "partition.metadata"
    metadata.write_text(metadata.read_text()[:-10])
    together = run(*AWAY, "--data-dir", data, "--data-dir", second)[1]["data"]
    named = run(*AWAY, "--data-dir", second, "--metadata", data)[1]["data"]
    for found in (together[-1], named[0]):
        assert "partition.metadata" in found["seen"]
        assert f"ottla log repair {second} --metadata {data}" in found["remedy"]


def test_a_directory_that_does_not_say_whose_it_is_is_a_problem(run: Run, data: Path) -> None:
    (data / "meta.properties").unlink()
    ((level, seen),) = of_data(run, data)
    assert (level, "meta.properties: is missing, and no broker starts on" in seen) == ("problem", True)


def test_metadata_without_a_directory_to_look_at_are_a_mistake(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--metadata", str(data)]) == 2
    assert "name that, too, with --data-dir" in capsys.readouterr().err


def test_what_is_no_data_directory_is_a_problem(run: Run, tmp_path: Path) -> None:
    assert "holds no logs" in of_data(run, tmp_path)[0][1]
    assert of_data(run, tmp_path / "nowhere") == [("problem", f"{tmp_path / 'nowhere'}: No such file or directory")]


def test_a_place_that_nobody_named_is_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS", raising=False)
    probe = (
        "import sys, ottla.cli.options as o; o.DEFAULT_ADDRESS = sys.argv[1]; "
        "from ottla.cli.main import main; sys.exit(main(['doctor', '--json']))"
    )
    command = [sys.executable, "-c", probe, f"127.0.0.1:{free_port()}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done
    last = json.loads(done.stdout)[-1]
    assert (last["level"], "ottla broker" in last["remedy"]) == ("warning", True)


@pytest.mark.parametrize(("no_color", "coloured"), [("1", False), ("", True)])
def test_colours_are_left_out_where_none_are_wanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], no_color: str, coloured: bool
) -> None:
    monkeypatch.setattr("click._compat.isatty", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", no_color)
    main(["doctor", "--bootstrap-server", f"127.0.0.1:{free_port()}"])
    assert ("\x1b[" in capsys.readouterr().out) is coloured


def test_two_directories_that_go_by_one_id_are_told_as_no_broker_starts_with_both(
    run: Run, data: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(data / "meta.properties", copy)
    told = [each["seen"] for each in run(*AWAY, "--data-dir", data, "--data-dir", copy)[1]["data"]]
    assert len([each for each in told if f"has the directory.id of {data}, as a copy of it has" in each]) == 1
    told = [each["seen"] for each in run(*AWAY, "--data-dir", data, "--data-dir", data)[1]["data"]]
    assert not any("directory.id" in each for each in told)
