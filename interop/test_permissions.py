"""The same requests of the same users are authorized equally by Apache Kafka's StandardAuthorizer and by ours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from ottla.broker.apis.permissions import CODES
from ottla.errors import name_of
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.protocol.schema import replace
from rivals import apache_kafka as rival
from tests.broker.every_api import GROUP, KNOWN, SampleRequest, codes_in, every_api, names_in, operations_in
from tests.broker.in_process_broker import House
from tests.broker.permitted_users import USERS, acls
from tests.broker.wire import Wire, batch

PATIENCE = 40.0
PASSWORD = "p"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": " ".join(
        [LOGIN, *(f'user_{user}="{PASSWORD}"' for user in USERS)]
    )
    + ";",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # The node itself, and the clients that prepare the test.
    "super.users": "User:ANONYMOUS",
}
REFUSALS = {int(code) for code in CODES.values()}


def committed(answer: Any) -> bool:
    """True if the commit for the existing topic was accepted."""
    return not any(each.partitions[0].error_code for each in answer.topics if each.name == KNOWN)


class Theirs:
    """An Apache Kafka broker with the users."""

    def __init__(self, kafka: rival.ApacheKafka) -> None:
        self.address = kafka.listeners["SASL_PLAINTEXT"]
        self.admin = Wire(kafka.bootstrap_servers)
        self.admin.create(KNOWN)
        (topic,) = self.until(lambda: self.admin.metadata(KNOWN).topics, lambda found: not found[0].error_code)
        self.cases = every_api(topic.topic_id, batch([b"a"]))
        for key_type, key in ((0, GROUP), (1, "writer")):
            asked = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            self.until(lambda asked=asked: self.admin.ask(asked, 4), lambda found: not found.coordinators[0].error_code)
        commit = replace(self.cases["OffsetCommit"].request, group_id=GROUP)
        self.until(lambda: self.admin.ask(commit, 9), committed)
        self.allow()
        self.wires: dict[str, Wire] = {}

    def until(self, ask: Any, good: Any) -> Any:
        """Repeat a request to a broker that may still be starting, until `good` accepts the response."""
        deadline = time.monotonic() + PATIENCE
        while not good(found := ask()):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        return found

    def allow(self) -> None:
        rules = [
            AclCreation(
                each.resource_type, each.name, each.pattern_type, each.principal, "*", each.operation, each.permission
            )
            for user in USERS
            for each in acls(user)
        ]
        assert not any(each.error_code for each in self.admin.ask(CreateAclsRequest(rules)).results)
        everything = DescribeAclsRequest(1, None, 1, None, None, 1, 1)
        self.until(
            lambda: self.admin.ask(everything),
            lambda found: sum(len(each.acls) for each in found.resources) == len(rules),
        )

    def ask(self, asked: SampleRequest, user: str) -> Any:
        """Send the request as this user and return the response."""
        if user not in self.wires:
            self.wires[user] = wire = Wire(self.address)
            wire.ask(SaslHandshakeRequest("PLAIN"), 1)
            reported = wire.ask(SaslAuthenticateRequest(f"\0{user}\0{PASSWORD}".encode()), 1)
            assert not reported.error_code, reported.error_message
        return self.wires[user].ask(asked.request, asked.version)

    def close(self) -> None:
        for wire in (self.admin, *self.wires.values()):
            wire.socket.close()


@pytest.fixture(scope="module")
def theirs() -> Iterator[Theirs]:
    rival.fetch()
    with rival.apache_kafka(SETTINGS, listeners=["SASL_PLAINTEXT"]) as kafka:
        found = Theirs(kafka)
        yield found
        found.close()


@pytest.fixture(scope="module")
def ours() -> Iterator[House]:
    house = House()
    yield house
    house.close()


def revealed_by(name: str, answer: Any) -> tuple[Any, ...]:
    """Return what a response reveals: its authorization errors in order, its names, and the authorized operations."""
    codes = [name_of(code) for code in codes_in(answer) if code in REFUSALS]
    return codes, sorted(names_in(answer)), sorted(operations_in(answer))


NAMES = list(every_api(UUID(int=1), b""))


@pytest.mark.parametrize("name", NAMES)
def test_every_user_receives_the_same_response_from_kafka_and_from_ours(theirs: Theirs, ours: House, name: str) -> None:
    for user in USERS:
        from_kafka = revealed_by(name, theirs.ask(theirs.cases[name], user))
        from_us = revealed_by(name, ours.ask(ours.cases[name], user))
        assert from_us == from_kafka, f"{user} asks {name}"
