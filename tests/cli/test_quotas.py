"""`ottla quotas`, in short words and in those of kafka-configs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla import Admin, Broker
from ottla.cli.main import main
from ottla.client.admin import ClientQuotaEntity

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def address() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def run(address: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """`ottla …` at the broker, in this process."""

    def run_it(*words: object) -> tuple[int, str, str]:
        return (main([*map(str, words), "--bootstrap-server", address]), *capsys.readouterr())

    return run_it


def limits(run: Run, *whose: str) -> list[tuple[Any, ...]]:
    status, out, err = run("quotas", "describe", *whose, "--json")
    assert (status, err) == (0, "")
    return [tuple(each.values()) for each in json.loads(out)]


def test_quotas_are_set_described_changed_and_removed(run: Run, address: str) -> None:
    of_it = ("--user", "etl")
    wanted = "producer_byte_rate=1048576,request_percentage=12.5"
    assert run("quotas", "alter", *of_it, "--add-config", wanted) == (0, "", "")
    _, out, _ = run("quotas", "describe", *of_it)
    assert [line.split() for line in out.splitlines()] == [
        ["USER", "CLIENT-ID", "IP", "QUOTA", "VALUE"],
        ["etl", "-", "-", "producer_byte_rate", "1048576"],
        ["etl", "-", "-", "request_percentage", "12.5"],
    ]
    with Admin(bootstrap_servers=address) as admin:
        found = admin.describe_client_quotas(ClientQuotaEntity(user="etl"))
    assert found == {ClientQuotaEntity(user="etl"): {"producer_byte_rate": 1048576.0, "request_percentage": 12.5}}
    more = ("--add-config", "consumer_byte_rate=5", "--delete-config", "request_percentage")
    assert run("quotas", "alter", *of_it, *more)[0] == 0
    assert [row[3] for row in limits(run, *of_it)] == ["consumer_byte_rate", "producer_byte_rate"]
    assert run("quotas", "delete", *of_it, "--yes") == (0, "", "")
    assert limits(run) == []
    again = run("quotas", "delete", *of_it, "--yes")
    assert again == (0, "", "nothing to remove: user etl has no own limits\n")


def test_the_options_of_kafkas_tools_are_accepted(run: Run) -> None:
    rate = ("--add-config", "producer_byte_rate=1")
    for whose in (
        ("--entity-type", "users", "--entity-name", "a"),
        ("--entity-type", "users", "--entity-default"),
        ("--entity-type", "users", "--entity-name", "a", "--entity-type", "clients", "--entity-name", "app"),
        ("--client-defaults",),
        ("--user-defaults", "--client-id", "app"),
    ):
        assert run("quotas", "alter", *whose, *rate)[0] == 0
    by_address = ("--entity-type", "ips", "--entity-name", "10.0.0.7")
    assert run("quotas", "alter", *by_address, "--add-config", "connection_creation_rate=3")[0] == 0
    rows = {
        (None, "<default>", None),
        (None, None, "10.0.0.7"),
        ("<default>", None, None),
        ("<default>", "app", None),
        ("a", None, None),
        ("a", "app", None),
    }
    assert {row[:3] for row in limits(run)} == rows
    assert {row[:3] for row in limits(run, "--entity-type", "users")} == {row for row in rows if row[0]}
    assert {row[:3] for row in limits(run, "--entity-type", "clients")} == {row for row in rows if row[1]}
    assert limits(run, "--ip", "10.0.0.7") == [(None, None, "10.0.0.7", "connection_creation_rate", 3)]
    assert [row[:3] for row in limits(run, "--user", "a")] == [("a", None, None)]
    assert [row[:3] for row in limits(run, "--user-defaults")] == [("<default>", None, None)]
    assert run("quotas", "delete", "--user", "a", "--client-id", "app", "--yes")[0] == 0
    assert ("a", "app", None) not in {row[:3] for row in limits(run)}


def test_a_validated_quota_is_not_set(run: Run) -> None:
    of_it = ("--user", "a", "--add-config", "producer_byte_rate=1", "--validate-only")
    assert run("quotas", "alter", *of_it) == (0, "", "")
    assert limits(run) == []


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("alter --add-config producer_byte_rate=1", 2, "no entity given: expected --user NAME"),
        ("alter --entity-type users --add-config producer_byte_rate=1", 2, "no entity given"),
        ("alter --user a", 2, "nothing to alter"),
        ("alter --user a --add-config producer_byte_rte=1", 2, "did you mean 'producer_byte_rate'?"),
        ("alter --user a --add-config connections=1", 2, "unknown quota 'connections'; expected producer_byte_rate"),
        ("alter --ip 10.0.0.7 --add-config producer_byte_rate=1", 2, "expected connection_creation_rate"),
        ("alter --user a --add-config producer_byte_rate=much", 2, "expected a number above 0"),
        ("alter --user a --add-config producer_byte_rate=0", 2, "--delete-config producer_byte_rate removes the limit"),
        ("alter --user a --ip 10.0.0.7 --add-config producer_byte_rate=1", 2, "--ip excludes --user and --client-id"),
        ("describe --user a --user-defaults", 2, "--user and --user-defaults exclude each other"),
        ("describe --entity-name a", 2, "need an --entity-type each"),
        ("describe --entity-type users --entity-type clients --entity-default", 2, "use --user-defaults"),
        ("describe --user a --entity-type users --entity-name b", 2, "the user is given twice"),
        ("describe --user=", 2, "a name is empty"),
    ],
)
def test_mistakes_are_clear_error_messages(run: Run, command: str, status: int, words: str) -> None:
    found, out, err = run("quotas", *command.split())
    assert (found, out, err.count("\n")) == (status, "", 1)
    assert words in err


def test_no_quota_is_removed_without_confirmation(run: Run) -> None:
    run("quotas", "alter", "--user", "a", "--add-config", "producer_byte_rate=1")
    status, _, err = run("quotas", "delete", "--user", "a")
    assert (status, "add --yes" in err) == (1, True)
    assert len(limits(run)) == 1
