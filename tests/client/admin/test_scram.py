"""SCRAM users managed by an admin client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla import Admin, AuthenticationError, Broker
from ottla.client.admin import UserScramCredentialDeletion, UserScramCredentialUpsertion
from ottla.errors import KafkaError

LISTEN = "INTERNAL://127.0.0.1:0,OUTSIDE://127.0.0.1:0"
PROTOCOLS = "INTERNAL:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT"
MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(
        listen=LISTEN, listener_security_protocol_map=PROTOCOLS, sasl_enabled_mechanisms=",".join(MECHANISMS)
    ) as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.addresses["INTERNAL"]) as admin:
        yield admin


def log_in(broker: Broker, user: str, password: str, mechanism: str) -> None:
    """Raise AuthenticationError if this is not the user's password."""
    with Admin(
        {
            "bootstrap.servers": broker.addresses["OUTSIDE"],
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
    ) as admin:
        admin.list_topics()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_logs_in_with_the_latest_password(broker: Broker, admin: Admin, mechanism: str) -> None:
    user = f"user of {mechanism}"
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, "first", mechanism, iterations=5000)])
    log_in(broker, user, "first", mechanism)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, "sécond", mechanism)])
    log_in(broker, user, "sécond", mechanism)
    with pytest.raises(AuthenticationError):
        log_in(broker, user, "first", mechanism)
    assert admin.describe_user_scram_credentials([user]) == {user: {mechanism: 4096}}
    admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, mechanism)])
    with pytest.raises(AuthenticationError):
        log_in(broker, user, "sécond", mechanism)


def test_all_users_are_described_with_each_of_their_mechanisms(admin: Admin) -> None:
    both = [UserScramCredentialUpsertion("both", "s3cret", mechanism, 4096 + 1) for mechanism in MECHANISMS]
    for each in both:
        admin.alter_user_scram_credentials([each])
    assert admin.describe_user_scram_credentials()["both"] == dict.fromkeys(MECHANISMS, 4097)


def test_each_user_is_altered_or_not_by_itself(admin: Admin) -> None:
    with pytest.raises(KafkaError, match="'nobody'"):
        admin.alter_user_scram_credentials(
            [UserScramCredentialDeletion("nobody"), UserScramCredentialUpsertion("somebody", "s3cret")]
        )
    assert "somebody" in admin.describe_user_scram_credentials()
    with pytest.raises(KafkaError, match="user 'nobody' has no SCRAM credentials"):
        admin.describe_user_scram_credentials(["nobody"])
    with pytest.raises(KafkaError, match="UNACCEPTABLE_CREDENTIAL"):
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("weak", "s3cret", iterations=3)])


NO_LIST: Any = UserScramCredentialDeletion("alice")
NO_ALTERATION: Any = ["alice"]


def test_invalid_arguments_are_rejected_before_any_request_is_sent(admin: Admin) -> None:
    with pytest.raises(TypeError, match="is not a list: write"):
        admin.alter_user_scram_credentials(NO_LIST)
    with pytest.raises(TypeError, match="'alice' is not an alteration: write"):
        admin.alter_user_scram_credentials(NO_ALTERATION)
    with pytest.raises(ValueError, match="must be text or bytes, and not be empty"):
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", "")])
    with pytest.raises(ValueError, match="SCRAM-SHA-256"):
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("alice", "SCRAM-SHA-265")])


def test_no_password_is_shown() -> None:
    assert "s3cret" not in repr(UserScramCredentialUpsertion("alice", "s3cret", salt=b"s3cret"))
