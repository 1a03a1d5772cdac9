"""The findings derived from facts: observation, level and remedy."""

from __future__ import annotations

from typing import Any

import pytest

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
from ottla.cli.doctor.findings import Finding, format_few, ok, problem, summary, warning
from ottla.cli.doctor.machine import (
    MachineFacts,
    Requirement,
    disk_finding,
    extras_findings,
    files_finding,
    is_version_in,
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
    protocol_finding,
)
from ottla.model import PartitionInfo

GIB = 2**30


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
            "the name 'kafak' does not resolve: Name or service not known",
            "its entry in DNS",
        ),
        (
            bootstrap_finding(AddressFacts("h", 9092, ["10.0.0.1"], unreached="connection refused"), is_default=False),
            "problem",
            "no broker answers at h:9092: connection refused",
            "no firewall",
        ),
        (
            bootstrap_finding(AddressFacts("h", 9092, ["::1"], unreached="connection refused"), is_default=True),
            "warning",
            "no broker answers at the default address",
            "ottla broker",
        ),
        (bootstrap_finding(reached("::1", "::1"), is_default=False), "ok", "[::1]:9092 (::1) accepts connections", None),
        (protocol_finding(None, "SSL", is_default=False), "ok", "over SSL", None),
        (
            protocol_finding("not a Kafka broker: h:1 (from bootstrap.servers): it speaks HTTP: not Kafka's protocol; take the port of a broker", "PLAINTEXT", is_default=False),
            "problem",
            "it speaks HTTP: not Kafka's protocol",
            "take the port of a broker",
        ),
        (
            protocol_finding("h:1 (from bootstrap.servers): this port of the broker asks for a login: set security.protocol=SASL_SSL and sasl.mechanism=PLAIN", "PLAINTEXT", is_default=False),
            "problem",
            "this port of the broker asks for a login",
            "set security.protocol=SASL_SSL and sasl.mechanism=PLAIN",
        ),
        (protocol_finding("no answer", "SSL", is_default=True), "warning", "no answer", "security.protocol matches it"),
        (kind_finding(is_ottla=True, metadata_version=30), "ok", "it is Ottla and runs metadata.version 30, Kafka 4.3's", None),
        (kind_finding(is_ottla=True, metadata_version=33), "ok", "it is Ottla and runs metadata.version 33, Kafka 4.4's", None),
        (kind_finding(is_ottla=False, metadata_version=17), "ok", "it is Apache Kafka or compatible and runs metadata.version 17, Kafka 3.7's", None),
        (kind_finding(is_ottla=None, metadata_version=None), "ok", "no metadata.version, as before KRaft", None),
        (clock_finding(0.2, 0.1), "ok", "agree within 0.3 s", None),
        (clock_finding(-0.5, 5.0), "ok", "agree within 5.5 s", None),
        (clock_finding(-3.0, 0.1), "warning", "3.0 s behind this machine's", "NTP"),
        (clock_finding(120.0, 0.1), "problem", "120.0 s ahead of this machine's", "NTP"),
    ],
)  # fmt: skip
def test_each_fact_is_converted_to_a_finding(finding: Finding, level: str, seen: str, remedy: str | None) -> None:
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
        (group_findings([GroupFacts("g", "PreparingRebalance", is_stuck=True)]), [("warning", "rebalancing during the whole check: g (PreparingRebalance)")]),
        (group_findings([GroupFacts("g", "Empty", lag=1234)]), [("warning", "without members, and behind: g (1,234 behind)")]),
        (group_findings([GroupFacts("g", "Empty")]), [("ok", "1 group")]),
        (group_findings([GroupFacts("g", "Empty")], 3), [("warning", "only the first 1 groups were checked, not 3 more")]),
        (group_findings([GroupFacts("g", "Stable", lost=7)]), [("warning", "before these groups read them: g (7)")]),
        (transaction_findings([], []), [("ok", "0 transactions under way")]),
        (transaction_findings([TransactionFacts("t", 1_000, 60_000)], []), [("ok", "1 transaction under way")]),
        (transaction_findings([TransactionFacts("t", 400_000, 900_000)], []), [("warning", "open for long, and readers of committed records wait: t (400 s)")]),
        (transaction_findings([TransactionFacts("t", 400_000, 60_000)], []), [("problem", "longer than their timeout: t (400 s)")]),
        (transaction_findings([], ["t-0"]), [("problem", "that no coordinator will end keep readers of committed records waiting: t-0")]),
        (data_findings(DataFacts("/d", unreadable="/d holds no logs")), [("problem", "/d holds no logs")]),
        (data_findings(DataFacts("/d", free=10**12, total=10**13, partitions=2, size=5_000)), [("ok", "are free for /d"), ("ok", "/d is whole: 2 partitions, 5.0 kB")]),
        (data_findings(DataFacts("/d", free=10**12, total=10**13, faults=["x: torn"], live=True)), [("ok", "are free"), ("problem", "1 fault in /d: x: torn")]),
        (data_findings(DataFacts("/d", free=10**12, total=10**13, closed=False)), [("ok", "are free"), ("ok", "is whole"), ("warning", "did not shut down cleanly")]),
    ],
)  # fmt: skip
def test_facts_are_converted_to_findings(findings: list[Finding], expected: list[tuple[str, str]]) -> None:
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
        (LOCAL, NEAR, "broker 1 advertises localhost:9092, which is every client's own machine"),
        (AddressFacts("kafka", 9092, unresolved="Name or service not known"), LOCAL, "is it the name of a container?"),
        (
            AddressFacts("b.example.org", 9092, unresolved="unknown"),
            LOCAL,
            "which cannot be reached from here: unknown",
        ),
        (AddressFacts("127.0.0.1", 9093, ["127.0.0.1"], unreached="connection refused"), LOCAL, "connection refused"),
    ],
)
def test_an_advertised_address_must_reach_the_broker(
    broker: AddressFacts, asked: AddressFacts, expected: str | None
) -> None:
    (found,) = advertised_findings({1: broker}, [asked])
    assert found.level == ("ok" if expected is None else "problem")
    assert expected is None or expected in found.seen
    assert expected is None or "set advertised.listeners of broker 1" in str(found.remedy)


def test_extras_are_listed_with_versions_and_an_unusable_one_is_a_warning() -> None:
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
def test_versions_are_compared_with_their_bounds(version: str, bounds: str, expected: bool) -> None:
    assert is_version_in(version, bounds) == expected


def test_a_machine_without_spark_needs_no_java() -> None:
    facts = MachineFacts("3.12.1", 29, [], {}, None, (1024, 65536))
    assert [each.check for each in machine_findings(facts)] == ["python", "hot loops", "extras", "open files"]


def test_many_names_are_abbreviated_with_a_count() -> None:
    assert format_few("abc") == "a, b, c"
    assert format_few("abcdefg") == "a, b, c, d, e and 2 more"
    assert summary([ok("a", "b"), warning("a", "b", "c"), problem("a", "b", "c")]) == "1 problem, 1 warning, 1 ok"
