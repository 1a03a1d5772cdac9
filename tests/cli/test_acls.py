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


def test_rules_for_a_name_are_those_that_count_for_it(at: tuple[str, str], capsys: Captured) -> None:
    for name, pattern in (("flights", "literal"), ("fl", "prefixed"), ("other", "literal")):
        one = ["--deny-principal", "User:b", "--operation", "Read", "--topic", name, "--resource-pattern-type", pattern]
        assert main(["acls", "create", *at, *one]) == 0
    found = listed(at, capsys, "--topic", "flights", "--resource-pattern-type", "match")
    assert found == ["deny User:b read topic fl prefixed", "deny User:b read topic flights literal"]


def test_rules_are_taken_back_by_what_they_are_about_or_whom(at: tuple[str, str], capsys: Captured) -> None:
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
        (["create", "--topic", "t"], "name who may or may not"),
        (["create", "--allow-principal", "User:a"], "name what it is about"),
        (["create", "--allow-principal", "bob", "--topic", "t"], "'bob' is no principal: write User:bob"),
        (["create", "--deny-principal", "bob", "--topic", "t"], "'bob' is no principal: write User:bob"),
        (["delete"], "name what it is about"),
    ],
)
def test_a_command_that_says_too_little_is_answered_with_what_is_missing(
    words: list[str], said: str, capsys: Captured
) -> None:
    assert main(["acls", *words]) == 2
    assert said in capsys.readouterr().err
