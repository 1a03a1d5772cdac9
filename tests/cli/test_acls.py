"""`ottla acls`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ottla import Broker
from ottla.cli.main import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def at() -> Iterator[tuple[str, str]]:
    settings: dict[str, Any] = {"authorizer_class_name": "standard", "super_users": "User:ANONYMOUS"}
    with Broker(**settings) as broker:
        yield "--bootstrap-server", broker.bootstrap_servers


def listed(at: tuple[str, str], capsys: Captured, *options: str) -> list[str]:
    capsys.readouterr()
    assert main(["acls", "list", *at, "--json", *options]) == 0
    return [
        f"{each['permission']} {each['principal']} {each['operation']} {each['resource']} {each['name']} {each['pattern']}"
        for each in json.loads(capsys.readouterr().out)
    ]


def test_a_consumer_and_a_producer_get_what_they_need(at: tuple[str, str], capsys: Captured) -> None:
    consumer = ["--allow-principal", "User:a", "--consumer", "--topic", "t", "--group", "g"]
    producer = ["--allow-principal", "User:p", "--producer", "--topic", "raw-", "--resource-pattern-type", "prefixed"]
    assert main(["acls", "create", *at, *consumer]) == 0
    assert main(["acls", "create", *at, *producer]) == 0
    assert sorted(listed(at, capsys)) == [
        "allow User:a describe topic t literal",
        "allow User:a read group g literal",
        "allow User:a read topic t literal",
        "allow User:p create topic raw- prefixed",
        "allow User:p describe topic raw- prefixed",
        "allow User:p write topic raw- prefixed",
    ]


def test_acls_for_a_name_include_all_that_apply_to_it(at: tuple[str, str], capsys: Captured) -> None:
    for name, pattern in (("flights", "literal"), ("fl", "prefixed"), ("other", "literal")):
        one = ["--deny-principal", "User:b", "--operation", "Read", "--topic", name, "--resource-pattern-type", pattern]
        assert main(["acls", "create", *at, *one]) == 0
    found = listed(at, capsys, "--topic", "flights", "--resource-pattern-type", "match")
    assert found == ["deny User:b read topic fl prefixed", "deny User:b read topic flights literal"]


def test_acls_are_deleted_by_resource_or_principal(at: tuple[str, str], capsys: Captured) -> None:
    for principal in ("User:a", "User:b"):
        assert main(["acls", "create", *at, "--allow-principal", principal, "--cluster", "--topic", "t"]) == 0
    assert (
        main(["acls", "delete", *at, "--force", "--allow-principal", "User:a", "--topic", "t", "--operation", "all"])
        == 0
    )
    assert len(listed(at, capsys)) == 3
    assert main(["acls", "delete", *at, "--force", "--cluster"]) == 0
    assert listed(at, capsys) == ["allow User:b all topic t literal"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "--topic", "t"], "no principal given"),
        (["create", "--allow-principal", "User:a"], "no resource given"),
        (["create", "--allow-principal", "bob", "--topic", "t"], "'bob': expected User:bob"),
        (["create", "--deny-principal", "bob", "--topic", "t"], "'bob': expected User:bob"),
        (["delete"], "no resource given"),
    ],
)
def test_an_incomplete_command_is_an_error_that_names_the_missing_options(
    words: list[str], said: str, capsys: Captured
) -> None:
    assert main(["acls", *words]) == 2
    assert said in capsys.readouterr().err
