"""Kafka's own tools for ACLs and quotas print the same on our broker as on Kafka's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interop.kafka_tools import Tools
from ottla import Broker
from ottla.cli.main import main
from rivals import apache_kafka as rival
from tests.patience import eventually

ACLS, CONFIGS, TOKENS, TOPICS = (
    "AclCommand",
    "org.apache.kafka.tools.ConfigCommand",
    "DelegationTokenCommand",
    "TopicCommand",
)
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SCRAM, SCRAM_MODULE = "SCRAM-SHA-256", "org.apache.kafka.common.security.scram.ScramLoginModule required"
USER, PASSWORD = "alice", "al1ce"
PROTOCOLS = "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"


class Side(NamedTuple):
    """A broker with users, and the tools' settings for one of them."""

    plain: str
    with_login: str
    folder: Path

    def login(self, name: str, password: str, **more: str) -> tuple[str, ...]:
        """Return the tool's arguments for a login with this name and password."""
        options = " ".join(
            f'{key}="{value}"' for key, value in {"username": name, "password": password, **more}.items()
        )
        file = self.folder / f"{name}.properties"
        lines = ("security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={SCRAM}")
        file.write_text("\n".join([*lines, f"sasl.jaas.config={SCRAM_MODULE} {options};"]))
        return ("--bootstrap-server", self.with_login, "--command-config", str(file))


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Side]]:
    """Apache Kafka's broker and ours."""
    rival.fetch()
    settings = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": SCRAM,
        "delegation.token.secret.key": "s3cret",
    }
    also = {
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{PROTOCOLS}",
        f"listener.name.sasl_plaintext.{SCRAM.lower()}.sasl.jaas.config": f"{SCRAM_MODULE};",
    }
    user = f"{SCRAM}=[name={USER},password={PASSWORD}]"
    ours: dict[str, Any] = {name.replace(".", "_"): value for name, value in settings.items()}
    listen = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    folders = [tmp_path_factory.mktemp(name) for name in ("theirs", "ours")]
    with (
        rival.apache_kafka(
            settings | also, listeners=["SASL_PLAINTEXT"], formatted_with=["--add-scram", user]
        ) as kafka,
        Broker(listen=listen, add_scram=user, process=True, **ours) as broker,
    ):
        yield [
            Side(kafka.bootstrap_servers, kafka.listeners["SASL_PLAINTEXT"], folders[0]),
            Side(broker.addresses["PLAINTEXT"], broker.addresses["SASL_PLAINTEXT"], folders[1]),
        ]


@pytest.fixture(scope="module")
def addresses(sides: list[Side]) -> list[str]:
    return [side.plain for side in sides]


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


def lines(text: str) -> list[list[str]]:
    """Split the output into words per line, sorted, since the order of rules and limits is unspecified."""
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


RULE = re.compile(r"\(principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)\)")
RESOURCE = re.compile(r"ResourcePattern\(resourceType=(\w+), name=(\S+), patternType=(\w+)\)")


def test_our_command_line_prints_the_same_rules_as_kafka_acls(
    tools: Tools, addresses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for at in addresses:
        where = ("--bootstrap-server", at)
        assert tools.run(ACLS, *where, *ACL_STORY[0]).status == tools.run(ACLS, *where, *ACL_STORY[2]).status == 0
        theirs = rules_in(tools.run(ACLS, *where, "--list").text)
        assert main(["acls", "list", "--json", *where]) == 0
        mine = [tuple(row.values()) for row in json.loads(capsys.readouterr().out)]
        assert len(mine) > 3
        assert sorted(tuple(normalized(each) for each in row) for row in mine) == sorted(theirs)


def rules_in(text: str) -> list[tuple[str, ...]]:
    """Parse resource, name, pattern, principal, host, operation and permission of each rule that Kafka prints."""
    rules: list[tuple[str, ...]] = []
    resource: tuple[str, ...] = ()
    for line in text.splitlines():
        if found := RESOURCE.search(line):
            resource = found.groups()
        elif found := RULE.search(line):
            rules.append(tuple(normalized(each) for each in (*resource, *found.groups())))
    return rules


def normalized(word: str) -> str:
    """Normalize a word: `CLUSTER_ACTION` and `cluster-action` are equal."""
    return word.lower().replace("_", "-")


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


def test_kafka_configs_prints_the_same_quotas_at_both(tools: Tools, addresses: list[str]) -> None:
    for step in QUOTA_STORY:
        theirs, ours = (tools.run(CONFIGS, "--bootstrap-server", at, *step) for at in addresses)
        assert ours.status == theirs.status == 0, ours.text
        assert lines(ours.text) == lines(theirs.text), step


@pytest.mark.parametrize("mistake", QUOTA_MISTAKES, ids=" ".join)
def test_a_quota_that_kafka_rejects_is_rejected(tools: Tools, addresses: list[str], mistake: tuple[str, ...]) -> None:
    theirs, ours = (tools.run(CONFIGS, "--bootstrap-server", at, *mistake) for at in addresses)
    assert (ours.status, theirs.status) == (1, 1), f"{ours.text}\n{theirs.text}"


USERS = ("--entity-type", "users")
USER_STORY = [
    (*USERS, "--entity-name", "fred", "--alter", "--add-config", f"{SCRAM}=[iterations=8192,password=fr3d]"),
    (*USERS, "--entity-name", "fred", "--alter", "--add-config", "producer_byte_rate=1000"),
    (*USERS, "--describe"),
    (*USERS, "--entity-name", "fred", "--describe"),
    (*USERS, "--entity-name", "fred", "--alter", "--delete-config", SCRAM),
    (*USERS, "--entity-name", "fred", "--alter", "--delete-config", "producer_byte_rate"),
    (*USERS, "--describe"),
]


def test_kafka_configs_prints_the_same_users_at_both(tools: Tools, addresses: list[str]) -> None:
    for step in USER_STORY:
        theirs, ours = (tools.run(CONFIGS, "--bootstrap-server", at, *step) for at in addresses)
        assert ours.status == theirs.status == 0, ours.text
        assert lines(ours.text) == lines(theirs.text), step


TOKEN_STORY = [
    ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"),
    ("--describe",),
    ("--describe", "--owner-principal", "User:nobody"),
    ("--renew", "--renew-time-period", "-1", "--hmac", "{hmac}"),
    ("--create", "--max-life-time-period", "-1", "--owner-principal", "User:nobody"),
    ("--create", "--max-life-time-period", "-1", "--owner-principal", "User:etl"),
    ("--describe",),
    ("--expire", "--expiry-time-period", "-1", "--hmac", "{hmac}"),
    ("--describe",),
    ("--renew", "--renew-time-period", "-1", "--hmac", "{hmac}"),
]
"""Alice's commands; she may create tokens for etl. The HMAC is that of the first token."""
TOKEN = re.compile(r"^(\S{22})\s+(\S{80,90})\s", re.MULTILINE)
DATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d[\d.,]*)?")
PER_RUN = re.compile(r"hmac \S+|tokenId : \S+|\d{13}")


def stable_output(tool_said: str) -> list[list[str]]:
    """Return the tool's output without the parts that differ in each run."""
    without = PER_RUN.sub("", DATED.sub("", TOKEN.sub("TOKEN ", tool_said)))
    return lines("\n".join(line for line in without.splitlines() if not line.startswith("\tat ")))


def renewed(tools: Tools, side: Side, hmac: str) -> bool:
    """True if the token can be renewed, with the same command as in the story."""
    return tools.run(TOKENS, *side.login(USER, PASSWORD), *TOKEN_STORY[3][:-1], hmac).status == 0


def test_kafka_delegation_tokens_prints_the_same_at_both_and_a_token_authenticates_its_owner(
    tools: Tools, sides: list[Side]
) -> None:
    may = ("--add", "--allow-principal", "User:alice", "--operation", "CreateTokens", "--user-principal", "User:etl")
    sees = ("--add", "--allow-principal", "User:etl", "--operation", "Describe", "--topic", "raw")
    said: list[list[Any]] = []
    for side in sides:
        for rule in (may, sees):
            assert tools.run(ACLS, "--bootstrap-server", side.plain, *rule).status == 0
        topic = ("--create", "--topic", "raw", "--partitions", "1", "--replication-factor", "1")
        assert tools.run(TOPICS, "--bootstrap-server", side.plain, *topic).status == 0
        steps = [tools.run(TOKENS, *side.login(USER, PASSWORD), *TOKEN_STORY[0])]
        mine = TOKEN.search(steps[0].text)
        assert mine is not None, steps[0].text
        # Kafka's controller responds to a creation before it knows the new token.
        eventually(partial(renewed, tools, side, mine[2]))
        for step in TOKEN_STORY[1:]:
            words = [word.format(hmac=mine[2]) for word in step]
            steps.append(tools.run(TOKENS, *side.login(USER, PASSWORD), *words))
        others = TOKEN.search(steps[5].text)
        assert others is not None, steps[5].text
        seen = tools.run(TOPICS, *side.login(others[1], others[2], tokenauth="true"), "--list")
        assert (seen.status, seen.text) == (0, "raw"), seen.text
        said.append([(step.status, stable_output(step.text)) for step in steps])
    theirs, ours = said
    for step, by_kafka, by_us in zip(TOKEN_STORY, theirs, ours, strict=True):
        assert by_us == by_kafka, step
