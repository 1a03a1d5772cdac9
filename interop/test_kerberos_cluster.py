"""A cluster in which nodes authenticate each other with Kerberos: to the controller, and among brokers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from ottla import Admin, NewTopic, Producer
from ottla.errors import OttlaError
from rivals import kerberos
from rivals.kafka_cluster import wait_for
from rivals.kerberos import REALM, Realm, realm
from tests.broker.cluster_nodes import BrokerPlace
from tests.broker.quorum_nodes import PORT, Place, new_hosts
from tests.cli.conftest import ENVIRONMENT, start

KRB5 = "com.sun.security.auth.module.Krb5LoginModule required"
LINE = "listener.name.{}.gssapi.sasl.jaas.config"
SESSION_MS = 3000


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Realm, list[BrokerPlace]]]:
    """A realm, and two brokers under a controller."""
    if (reported := kerberos.missing()) is not None:
        pytest.skip(reported)
    folder, hosts = tmp_path_factory.mktemp("kerberos"), new_hosts(3)
    with realm() as made, ExitStack() as undo:
        undo.enter_context(
            patch.dict(ENVIRONMENT, {name: os.environ[name] for name in os.environ if name.startswith("KRB5")})
        )
        controller = Place(folder, 1, hosts[0])
        brokers = [BrokerPlace(folder, number + 2, host, [controller]) for number, host in enumerate(hosts[1:])]
        for place, host in zip([controller, *brokers], hosts, strict=True):
            made.add(f"kafka/{host}")
            place.settings |= node_settings(made.keytab(f"{host}.keytab", f"kafka/{host}"), host)
        for broker, host in zip(brokers, hosts[1:], strict=True):
            broker.settings |= broker_settings(host, broker.settings[LINE.format("controller")])
        made.add("alice")
        controller.format([controller.voter])
        for place in [controller, *brokers]:
            place.write()
            undo.callback(place.kill)
            place.start()
        yield made, brokers


def node_settings(keytab: str, host: str) -> dict[str, str]:
    """Return a node's Kerberos settings, for incoming and outgoing connections."""
    line = f'{KRB5} useKeyTab=true storeKey=true keyTab="{keytab}" principal="kafka/{host}@{REALM}";'
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.mechanism.controller.protocol": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        LINE.format("controller"): line,
        "connections.max.reauth.ms": str(SESSION_MS),
    }


def broker_settings(host: str, line: str) -> dict[str, str]:
    return {
        "listeners": f"CLIENTS://{host}:{PORT}",
        "inter.broker.listener.name": "CLIENTS",
        LINE.format("clients"): line,
    }


def client(made: Realm, broker: BrokerPlace) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.keytab": made.keytab("alice.keytab", "alice"),
        "sasl.kerberos.principal": "alice",
    }


def test_brokers_register_and_replicate_beyond_their_sessions(
    nodes: tuple[Realm, list[BrokerPlace]],
) -> None:
    made, brokers = nodes
    settings = client(made, brokers[0])
    with Admin(settings) as admin, Producer({**settings, "acks": "all"}) as producer:
        wait_for(lambda: made_topic(admin), "both brokers are there")
        wait_for(lambda: in_sync(admin) == [{2, 3}] * 4, "both have copies")
        offsets = []
        end = time.monotonic() + 2 * SESSION_MS / 1000
        while time.monotonic() < end:
            offsets += [producer.send("copied", b"x", partition=n).result(30).offset for n in range(4)]
        assert sorted(offsets) == sorted(list(range(len(offsets) // 4)) * 4)


def in_sync(admin: Admin) -> list[set[int]]:
    try:
        return [set(each.in_sync_replicas) for each in admin.describe_topics(["copied"])["copied"].partitions]
    except OttlaError:
        return []


def made_topic(admin: Admin) -> bool:
    try:
        admin.create_topics([NewTopic("copied", 4, 2, {"min.insync.replicas": "2"})])
    except OttlaError:
        return False
    return True


def test_a_broker_with_a_key_that_the_kdc_does_not_know_reports_it_and_exits(
    nodes: tuple[Realm, list[BrokerPlace]], tmp_path: Path
) -> None:
    made, brokers = nodes
    made.add("kafka/ghost")
    ghost = BrokerPlace(tmp_path, 9, new_hosts(1)[0], [])
    ghost.settings |= {name: brokers[0].settings[name] for name in ("controller.quorum.bootstrap.servers",)}
    host = ghost.address.partition(":")[0]
    ghost.settings |= node_settings(made.keytab("ghost.keytab", "kafka/ghost"), "ghost")
    ghost.settings |= broker_settings(host, ghost.settings[LINE.format("controller")])
    ghost.write()
    made.administer("delprinc -force kafka/ghost")
    process = start("broker", "--config", ghost.file)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "the KDC does not know the principal" in said
    assert "Traceback" not in said
