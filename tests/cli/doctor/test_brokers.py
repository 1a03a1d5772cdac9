"""`ottla doctor` against running brokers and on this machine."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, Cluster, Consumer, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from ottla.cli.doctor import remote as doctor_remote
from ottla.cli.main import main
from ottla.free_ports import free_port
from tests.cli.doctor.conftest import Run, levels
from tests.cli.test_mistakes import answer_in_http
from tests.patience import eventually


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_a_healthy_broker_has_no_problems(run: Run, tmp_path: Path) -> None:
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


def test_text_output_has_a_line_for_each_finding_and_a_count(
    broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--bootstrap-server", broker.bootstrap_servers]) == 0
    *lines, empty, last = capsys.readouterr().out.splitlines()
    assert all(line.split()[0] in ("ok", "warning") for line in lines)
    assert (empty, last.startswith("0 problems, ")) == ("", True)


def test_unhealthy_topics_groups_and_transactions_are_named(
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
    assert lost == "records were deleted before these groups read them: left (3)"
    assert levels(found, "transactions") == ["warning"]
    assert "billing (" in found["transactions"][0]["seen"]


def test_a_group_that_keeps_rebalancing_is_stuck(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert found["groups"][0]["seen"] == "rebalancing during the whole check: waiting (PreparingRebalance)"


def test_a_broker_that_advertises_an_unreachable_address_is_a_problem(run: Run) -> None:
    port, nowhere = free_port(), free_port()
    settings: dict[str, Any] = {"advertised_listeners": f"PLAINTEXT://127.0.0.1:{nowhere}"}
    with Broker(listen=f"127.0.0.1:{port}", **settings):
        status, found = run("--bootstrap-server", f"127.0.0.1:{port}", "--set", "default.api.timeout.ms=1000")
    assert status == 1
    assert levels(found, "bootstrap", "protocol", "advertised") == ["ok", "ok", "problem"]
    seen = found["advertised"][0]["seen"]
    assert seen.startswith(f"broker 1 advertises 127.0.0.1:{nowhere}, which cannot be reached from here")
    assert "solve this first" in found["cluster"][0]["remedy"]


def test_another_server_that_answers_at_the_address_is_reported(run: Run) -> None:
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
    assert "the name 'no-such-host.invalid' does not resolve" in found["bootstrap"][0]["seen"]


def test_a_check_without_authorization_is_a_warning_and_the_others_run(run: Run) -> None:
    settings: dict[str, Any] = {"authorizer_class_name": "standard", "super_users": "User:admin"}
    with Broker(**settings) as broker:
        status, found = run("--bootstrap-server", broker.bootstrap_servers)
    assert status == 0
    denied = [each for some in found.values() for each in some if "could not be checked" in each["seen"]]
    assert denied
    assert all("ottla acls create" in each["remedy"] for each in denied)
    assert levels(found, "bootstrap", "protocol", "advertised") == ["ok"] * 3


def test_a_cluster_with_an_offline_node_has_lagging_replicas(run: Run) -> None:
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
    """Return the findings once the partitions have these findings; brokers learn of a stopped one at different times."""
    seen: list[dict[str, list[dict[str, Any]]]] = []

    def is_so() -> bool:
        status, found = run("--bootstrap-server", address)
        seen.append(found)
        return levels(found, "partitions") == expected and status == 1

    eventually(is_so)
    return seen[-1]


def test_an_unreachable_default_address_is_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_colours_are_omitted_if_they_are_disabled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], no_color: str, coloured: bool
) -> None:
    monkeypatch.setattr("click._compat.isatty", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", no_color)
    main(["doctor", "--bootstrap-server", f"127.0.0.1:{free_port()}"])
    assert ("\x1b[" in capsys.readouterr().out) is coloured
