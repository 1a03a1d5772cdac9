"""Kafka's own tools for rules and limits: on our broker they print what they print on Kafka's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from interop.kafka_tools import Tools
from ottla import Broker
from rivals import apache_kafka as rival

ACLS, CONFIGS = "AclCommand", "kafka.admin.ConfigCommand"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def addresses() -> Iterator[list[str]]:
    """Theirs and ours."""
    rival.fetch()
    settings = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
    ours: dict[str, Any] = {name.replace(".", "_"): value for name, value in settings.items()}
    with rival.apache_kafka(settings) as kafka, Broker(process=True, **ours) as broker:
        yield [kafka.bootstrap_servers, broker.bootstrap_servers]


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


def lines(text: str) -> list[list[str]]:
    """What was printed, word by word, in an order that does not depend on how rules and limits are kept."""
    return sorted(sorted(re.split(r"[ ,]+", line.strip())) for line in text.splitlines() if line.strip())


ACL_STORY = [
    ("--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "flights"),
    ("--add", "--deny-principal", "User:bob", "--deny-host", "10.0.0.7", "--operation", "All", "--group", "*"),
    ("--add", "--allow-principal", "User:etl", "--producer", "--topic", "raw-", "--resource-pattern-type", "prefixed"),
    ("--add", "--allow-principal", "User:ops", "--operation", "Alter", "--cluster"),
    ("--list",),
    ("--list", "--topic", "raw-1", "--resource-pattern-type", "match"),
    ("--list", "--principal", "User:alice"),
    ("--remove", "--force", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "flights"),
    ("--remove", "--force", "--topic", "raw-", "--resource-pattern-type", "prefixed"),
    ("--list",),
]


def test_kafka_acls_prints_the_same_at_both(tools: Tools, addresses: list[str]) -> None:
    for step in ACL_STORY:
        theirs, ours = (tools.run(ACLS, "--bootstrap-server", at, *step) for at in addresses)
        assert ours.status == theirs.status == 0, ours.text
        assert lines(ours.text) == lines(theirs.text), step


CLIENTS = ("--entity-type", "clients")
QUOTA_STORY = [
    (*CLIENTS, "--entity-name", "c", "--alter", "--add-config", "producer_byte_rate=1000,request_percentage=50"),
    (*CLIENTS, "--entity-default", "--alter", "--add-config", "consumer_byte_rate=2000"),
    ("--entity-type", "ips", "--entity-name", "10.0.0.7", "--alter", "--add-config", "connection_creation_rate=7"),
    (*CLIENTS, "--describe"),
    (*CLIENTS, "--entity-name", "c", "--describe"),
    ("--entity-type", "ips", "--describe"),
    (*CLIENTS, "--entity-name", "c", "--alter", "--delete-config", "request_percentage"),
    (*CLIENTS, "--describe"),
]
QUOTA_MISTAKES = [
    (*CLIENTS, "--entity-name", "c", "--alter", "--add-config", "producer_byte_rate=0"),
    (*CLIENTS, "--entity-name", "c", "--alter", "--add-config", "speed=1"),
]


def test_kafka_configs_prints_the_same_of_limits_at_both(tools: Tools, addresses: list[str]) -> None:
    for step in QUOTA_STORY:
        theirs, ours = (tools.run(CONFIGS, "--bootstrap-server", at, *step) for at in addresses)
        assert ours.status == theirs.status == 0, ours.text
        assert lines(ours.text) == lines(theirs.text), step


@pytest.mark.parametrize("mistake", QUOTA_MISTAKES, ids=" ".join)
def test_a_limit_that_kafka_refuses_is_refused(tools: Tools, addresses: list[str], mistake: tuple[str, ...]) -> None:
    theirs, ours = (tools.run(CONFIGS, "--bootstrap-server", at, *mistake) for at in addresses)
    assert (ours.status, theirs.status) == (1, 1), f"{ours.text}\n{theirs.text}"
