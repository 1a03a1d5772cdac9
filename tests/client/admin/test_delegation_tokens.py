"""Delegation tokens: creating, logging in, renewing and expiring them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla import Admin, Broker
from ottla.errors import AuthenticationError, KafkaError

MODULES = "org.apache.kafka.common.security"
USERS = {"alice": "a-secret", "bob": "b-secret"}


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    jaas = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    settings: dict[str, Any] = {
        "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "SASL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {jaas};",
        "delegation.token.secret.key": "s3cret",
    }
    with Broker(listen="SASL://127.0.0.1:0", **settings) as broker:
        yield broker.bootstrap_servers


def login(servers: str, name: str, password: str) -> Admin:
    return Admin(
        bootstrap_servers=servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=name,
        sasl_password=password,
    )


def test_a_delegation_token_is_created_described_renewed_and_expired(secured: str) -> None:
    with login(secured, "alice", USERS["alice"]) as admin:
        token = admin.create_delegation_token(renewers=["User:bob"], max_lifetime_ms=60_000)
        info = token.token_info
        assert (info.owner, info.token_requester, info.renewers) == ("User:alice", "User:alice", ("User:bob",))
        assert info.max_timestamp == info.issue_timestamp + 60_000
        assert admin.describe_delegation_token() == [token] == admin.describe_delegation_token(["User:bob"])
        assert admin.describe_delegation_token(["User:carol"]) == []
        assert admin.renew_delegation_token(token.hmac) == info.max_timestamp
        admin.expire_delegation_token(token.hmac)
        assert admin.describe_delegation_token() == []
        with pytest.raises(KafkaError, match="there is no such token"):
            admin.renew_delegation_token(token.hmac)
    assert token.hmac_as_base64 not in repr(token)


def test_a_token_logs_in_and_cannot_create_another_token(secured: str) -> None:
    with login(secured, "alice", USERS["alice"]) as admin:
        token = admin.create_delegation_token()
    with login_by_token(secured, token.token_info.token_id, token.hmac_as_base64) as admin:
        assert admin.list_topics() == {}
        with pytest.raises(KafkaError, match="not with a token"):
            admin.create_delegation_token()


def login_by_token(servers: str, token_id: str, password: str) -> Admin:
    return Admin(
        bootstrap_servers=servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_jaas_config=f'{MODULES}.scram.ScramLoginModule required username="{token_id}" password="{password}" tokenauth="true";',
    )


def test_a_user_who_does_not_own_the_token_gets_an_error(secured: str) -> None:
    with login(secured, "alice", USERS["alice"]) as admin:
        token = admin.create_delegation_token()
    with (
        login(secured, "bob", USERS["bob"]) as other,
        pytest.raises(KafkaError, match="is not the owner, requester or"),
    ):
        other.expire_delegation_token(token.hmac)
    with pytest.raises(AuthenticationError), login(secured, "bob", "wrong") as nobody:
        nobody.describe_delegation_token()


def test_an_unauthenticated_client_gets_no_token(admin: Admin) -> None:
    with pytest.raises(KafkaError, match="must authenticate with TLS or SASL"):
        admin.create_delegation_token()
