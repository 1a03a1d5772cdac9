"""A broker of Apache Kafka and one of ours, under a controller of ours that requires certificates and enforces ACLs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from interop.kafka_places import REFERENCE, KafkaPlace
from interop.kafka_tools import tool
from ottla import Admin, NewTopic
from ottla.errors import ErrorCode, KafkaError, OttlaError
from rivals import apache_kafka as rival
from rivals.kafka_cluster import wait_for
from tests.broker.cluster_nodes import BrokerPlace
from tests.broker.quorum_nodes import PORT, Place, new_hosts
from tests.certificates import Authority

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
LINE = f'{PLAIN} username="node" password="n0de" user_node="n0de" user_admin="adm1n" user_alice="al1ce";'
KAFKAS, OURS = 101, 102


def guarded(authority: Authority) -> dict[str, str]:
    """Return the settings of all nodes: TLS client certificates for controllers, passwords for brokers."""
    made = authority.certificate()
    shown = {
        "keystore.type": "PEM",
        "keystore.location": authority.write("node.pem", made.java_key + made.chain),
        "truststore.type": "PEM",
        "truststore.location": authority.file,
        "client.auth": "required",
        "endpoint.identification.algorithm": "",
        "principal.mapping.rules": "RULE:^.*$/node/",
    }
    return {
        "listener.security.protocol.map": "CONTROLLER:SSL,CLIENTS:SASL_PLAINTEXT",
        **{f"listener.name.controller.ssl.{name}": value for name, value in shown.items()},
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node;User:admin",
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }


def broker_settings(host: str) -> dict[str, str]:
    return {
        "process.roles": "broker",
        "listeners": f"CLIENTS://{host}:{PORT}",
        "inter.broker.listener.name": "CLIENTS",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": LINE,
        "cordoned.log.dirs": "",
    }


def client(address: str, name: str, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": password,
    }


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The address of Kafka's broker and the address of ours."""
    rival.fetch()
    folder = tmp_path_factory.mktemp("guarded")
    settings, hosts = guarded(Authority(folder)), new_hosts(3)
    controller = Place(folder, 1, hosts[0])
    controller.settings |= settings
    controller.write()
    controller.format([controller.voter], REFERENCE.release)
    kafka = KafkaPlace(folder, KAFKAS, hosts[1], [controller])
    ours = BrokerPlace(folder, OURS, hosts[2], [controller])
    for broker, host in ((kafka, hosts[1]), (ours, hosts[2])):
        broker.settings |= settings | broker_settings(host)
        broker.write()
    kafka.settings.pop("cordoned.log.dirs")
    kafka.write()
    kafka.format_as("--no-initial-controllers")
    with ExitStack() as undo:
        for each in (controller, kafka, ours):
            undo.callback(each.kill)
        controller.start()
        kafka.start()
        ours.start()
        kafka.wait_until_started()
        yield [kafka.address, ours.address]


def code_of(call: Callable[[], object]) -> int:
    try:
        call()
    except KafkaError as error:
        return error.code
    except OttlaError:
        return -1
    return 0


def make(admin: Admin, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 2)])


def may_make(admin: Admin, name: str) -> bool:
    return code_of(lambda: make(admin, name)) in (0, ErrorCode.TOPIC_ALREADY_EXISTS)


def test_clients_have_the_same_rights_at_kafkas_broker_and_at_ours(brokers: list[str], tmp_path: Path) -> None:
    login = tmp_path / "admin.properties"
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} username="admin" password="adm1n";\n'
    )
    at = ("--bootstrap-server", brokers[0], "--command-config", str(login))
    rule = ("--allow-principal", "User:alice", "--operation", "Create", "--topic", "alice-")
    tool("AclCommand", *at, "--add", *rule, "--resource-pattern-type", "prefixed")
    for number, address in enumerate(brokers):
        with Admin(client(address, "alice", "al1ce")) as alice:
            wait_for(partial(may_make, alice, f"alice-{number}"), "alice may")
            assert code_of(partial(make, alice, "bobs")) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert code_of(lambda: alice.delete_topics(["alice-0"])) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    listed = tool("AclCommand", "--bootstrap-server", brokers[1], *at[2:], "--list")
    assert "ResourcePattern(resourceType=TOPIC, name=alice-, patternType=PREFIXED)" in listed
    with Admin(client(brokers[1], "admin", "adm1n")) as admin:
        assert {"alice-0", "alice-1"} <= set(admin.list_topics())
        found = admin.describe_topics(["alice-1"])["alice-1"].partitions[0]
        assert set(found.in_sync_replicas) == {KAFKAS, OURS}
