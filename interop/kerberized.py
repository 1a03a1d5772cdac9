"""A Kerberos realm and the brokers that use it, ours and an Apache Kafka: fixtures and their parts."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from ottla import Broker
from rivals import apache_kafka as rival
from rivals import kerberos
from rivals.kerberos import REALM, Realm, realm

SESSION_MS = 4000
KRB5 = "com.sun.security.auth.module.Krb5LoginModule required"
RULES = r"RULE:[2:$1.$2](etl\..*)s/\./-/g,DEFAULT"
KERBEROS = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
Settings = dict[str, Any]


class Places(NamedTuple):
    """A Kerberos realm, its principals, and the brokers that accept its tickets."""

    realm: Realm
    alice: str
    """Alice's keytab; the keytabs of the other users are in the same folder."""
    brokers: dict[str, str]

    def at(self, which: str, **more: Any) -> Settings:
        return {
            "bootstrap.servers": self.brokers[which],
            **KERBEROS,
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def by_keytab(self, which: str) -> Settings:
        return self.at(which, sasl_kerberos_keytab=self.alice, sasl_kerberos_principal="alice")


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    """A realm with its principals, and our broker."""
    if (reported := kerberos.missing()) is not None:
        pytest.skip(reported)
    with realm() as made:
        made.add("alice", "etl/nightly", "kafka/localhost", "kafka/127.0.0.1")
        alice = made.keytab("alice.keytab", "alice")
        service = made.keytab("kafka.keytab", "kafka/127.0.0.1", "kafka/localhost")
        with our_broker(service) as ours:
            yield Places(made, alice, {"ottla": address_of(ours)})


@pytest.fixture(scope="module")
def apache(places: Places) -> Iterator[str]:
    """The address of an Apache Kafka broker in the realm."""
    with apache_kafka(places.realm, f"{places.realm.folder}/kafka.keytab") as node:
        yield node.listeners["SASL_PLAINTEXT"]


@pytest.fixture(params=["ottla", "apache"])
def which(request: pytest.FixtureRequest, places: Places) -> str:
    """Either broker of the realm."""
    name: str = request.param
    if name == "apache":
        places.brokers[name] = request.getfixturevalue("apache")
    return name


@contextmanager
def apache_kafka(made: Realm, keytab: str) -> Iterator[rival.ApacheKafka]:
    rival.fetch()
    line = f'{KRB5} useKeyTab=true storeKey=true keyTab="{keytab}" principal="kafka/127.0.0.1@{REALM}";'
    settings = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": line,
        "connections.max.reauth.ms": str(SESSION_MS),
    }
    with (
        patch.dict("os.environ", JAVA_TOOL_OPTIONS=java_option(made)),
        rival.apache_kafka(settings, listeners=("SASL_PLAINTEXT",)) as node,
    ):
        yield node


def java_option(made: Realm) -> str:
    return f"-Djava.security.krb5.conf={made.config}"


def our_broker(keytab: str) -> Broker:
    return Broker(
        listen="PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        process=True,
        sasl_enabled_mechanisms="GSSAPI",
        sasl_kerberos_principal_to_local_rules=RULES,
        connections_max_reauth_ms=SESSION_MS,
        connection_failed_authentication_delay_ms=10,
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS;User:alice;User:etl-nightly",
        **{
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": f'{KRB5} useKeyTab=true keyTab="{keytab}" principal="*";'
        },
    )


def address_of(broker: Broker) -> str:
    return broker.addresses["SASL_PLAINTEXT"]


def fresh() -> str:
    return f"kerberos-{uuid.uuid4().hex[:8]}"
