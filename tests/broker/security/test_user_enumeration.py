"""A stranger cannot learn from logins which users there are."""

from __future__ import annotations

import base64
import os
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.security import authentication as logins
from ottla.broker.security import delegation_tokens
from ottla.broker.security.authentication import Authentication
from ottla.broker.security.decoy_credentials import DecoyCredentials
from ottla.broker.security.login import ConnectionLogin
from ottla.broker.security.scram_credentials import check_password
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.node_records import RegisterBrokerRecord
from ottla.coordination.cluster.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.protocol.sasl.scram import ScramConversation
from ottla.protocol.sasl.scram_credential import MECHANISMS, NUMBERS, ScramCredential, credential_of, shape_of
from tests.broker.wire import Wire

BASE_36 = b"0123456789abcdefghijklmnopqrstuvwxyz"
KINDS = {"ottla": 24, "librdkafka": 64, "kafka": 26}
"""Salt lengths by the tool that drew the salt; Kafka's is text."""


class Cluster:
    """Metadata as `Decoys` reads it."""

    def __init__(self) -> None:
        self.machine = ClusterMetadata()

    def add(self, name: str, mechanism: str = "SCRAM-SHA-256", *, size: int = 24, iterations: int = 4096) -> None:
        salt = bytes(BASE_36[each % 36] for each in os.urandom(size)) if size == KINDS["kafka"] else os.urandom(size)
        number = NUMBERS[mechanism]
        self.machine.replay(UserScramCredentialRecord(name, number, salt, os.urandom(64), os.urandom(64), iterations))

    def decoys(self, own_id: bytes = b"directory id") -> DecoyCredentials:
        return DecoyCredentials(self, own_id)


def shapes(credentials: Mapping[str, ScramCredential]) -> dict[str, Any]:
    return {name: (len(each.salt), each.iterations) for name, each in credentials.items()}


NAMES = [f"name-{index}" for index in range(2000)]


def test_unknown_users_get_the_iterations_and_salt_lengths_of_users_in_the_same_proportion() -> None:
    cluster = Cluster()
    for index in range(400):
        size, iterations = (26, 8192) if index % 4 == 0 else (24, 16_384)
        cluster.add(f"user-{index}", size=size, iterations=iterations)
    decoys = cluster.decoys()
    made = [decoys.make_credential("SCRAM-SHA-256", name) for name in NAMES]
    seen = Counter((len(each.salt), each.iterations) for each in made)
    assert seen.keys() == {(26, 8192), (24, 16_384)}
    assert 0.15 < seen[26, 8192] / len(NAMES) < 0.35


def test_a_salt_stored_as_text_is_text_for_unknown_users_too() -> None:
    cluster = Cluster()
    cluster.add("alice", size=KINDS["kafka"], iterations=8192)
    found = cluster.machine.scram_credentials["alice", 1]
    decoys = cluster.decoys()
    salts = {decoys.make_credential("SCRAM-SHA-256", name).salt for name in NAMES}
    assert len(salts) == len(NAMES)
    assert {shape_of(salt, 8192) for salt in salts} == {shape_of(found.salt, 8192)}
    letters = Counter(letter for salt in salts for letter in salt[1:])
    assert set(letters) == set(BASE_36)
    assert max(letters.values()) < 1.2 * min(letters.values())


@pytest.mark.parametrize("mechanism", MECHANISMS.values())
def test_an_unknown_user_gets_the_same_answer_from_each_broker_and_after_a_restart(mechanism: str) -> None:
    cluster = Cluster()
    for index in range(10):
        cluster.add(f"user-{index}", mechanism, size=24 + index, iterations=4096 + index)
    one, other = cluster.decoys(), cluster.decoys()
    assert all(one.make_credential(mechanism, name) == other.make_credential(mechanism, name) for name in NAMES[:100])
    assert one.make_credential(mechanism, "x").salt != cluster.decoys(b"another").make_credential(mechanism, "x").salt
    assert one.make_credential(mechanism, "x").salt != one.make_credential(mechanism, "y").salt


def test_brokers_of_one_cluster_give_an_unknown_user_the_same_answer() -> None:
    cluster = Cluster()
    for broker in (2, 1):
        record = RegisterBrokerRecord(broker, log_dirs=[uuid.UUID(int=broker)])
        cluster.machine.replay(record)
    one, other = cluster.decoys(b"directory 1"), cluster.decoys(b"directory 2")
    assert one.make_credential("SCRAM-SHA-256", "x") == other.make_credential("SCRAM-SHA-256", "x")


def test_a_change_of_one_user_changes_the_answers_for_few_unknown_users() -> None:
    cluster = Cluster()
    for index in range(100):
        cluster.add(f"user-{index}", size=24 + index % 10)
    decoys = cluster.decoys()
    before = {name: decoys.make_credential("SCRAM-SHA-256", name) for name in NAMES}
    cluster.add("user-7", size=90)
    cluster.machine.replay(RemoveUserScramCredentialRecord("user-8", 1))
    cluster.add("one more", size=91)
    after = {name: decoys.make_credential("SCRAM-SHA-256", name) for name in NAMES}
    changed = sum(before[name] != after[name] for name in NAMES)
    assert 0 < changed < len(NAMES) / 5


def test_a_user_of_the_other_mechanism_only_is_answered_like_an_unknown_one() -> None:
    cluster = Cluster()
    cluster.add("bob", "SCRAM-SHA-512", size=64, iterations=9000)
    decoys = cluster.decoys()
    assert shapes({"bob": decoys.make_credential("SCRAM-SHA-256", "bob")}) == {"bob": (24, 4096)}
    assert shapes({"alice": decoys.make_credential("SCRAM-SHA-512", "alice")}) == {"alice": (64, 9000)}


def test_a_complete_password_exchange_of_an_unknown_user_takes_as_long_as_of_a_user() -> None:
    cluster = Cluster()
    cluster.add("alice", "SCRAM-SHA-512", iterations=16_384)
    mechanism, credential = cluster.decoys().make_any_credential("nobody")
    assert (mechanism, credential.iterations) == ("SCRAM-SHA-512", 16_384)


SALT = base64.b64encode(bytes(range(100, 124))).decode()
"""A fixed one, so that the places of users are the same each time."""
USERS = "\n".join(
    (
        f'SCRAM-SHA-256=[name=alice,password=a,iterations=16384,salt="{SALT}"]',
        f'SCRAM-SHA-512=[name=bob,password=b,iterations=8192,salt="{SALT}"]',
        f'SCRAM-SHA-256=[name=carol,password=c,iterations=4096,salt="{SALT}"]',
    )
)
LISTED = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_dora="d";'


def start(**more: Any) -> Broker:
    settings: dict[str, Any] = {
        "sasl_enabled_mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "add_scram": USERS,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": LISTED,
    }
    return Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", **settings, **more)


def first_answer(broker: Broker, mechanism: str, name: str) -> tuple[int, int]:
    """Length of the salt, and iterations."""
    with Wire(broker.bootstrap_servers) as wire:
        assert wire.ask(SaslHandshakeRequest(mechanism), 1).error_code == 0
        answer = wire.ask(SaslAuthenticateRequest(f"n,,n={name},r=x".encode()), 2)
    assert answer.error_code == 0
    _, salt, iterations = bytes(answer.auth_bytes).decode().split(",")
    return len(base64.b64decode(salt[2:])), int(iterations[2:])


def test_a_broker_answers_unknown_users_with_the_iterations_and_salt_lengths_of_its_users() -> None:
    with start() as broker:
        assert first_answer(broker, "SCRAM-SHA-256", "alice") == (24, 16_384)
        strangers = {first_answer(broker, "SCRAM-SHA-256", name) for name in NAMES[:60]}
        assert strangers == {(24, 16_384), (24, 4096)}
        assert {first_answer(broker, "SCRAM-SHA-512", name) for name in NAMES[:5]} == {(24, 8192)}


def refuse(broker: Broker, name: str) -> float:
    with Wire(broker.bootstrap_servers) as wire:
        assert wire.ask(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
        begin = time.perf_counter()
        answer = wire.ask(SaslAuthenticateRequest(f"\0{name}\0wrong".encode()), 2)
        took = time.perf_counter() - begin
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    return took


def test_a_wrong_password_is_hashed_for_listed_known_and_unknown_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked: list[str] = []

    def check(mechanism: str, credential: ScramCredential, password: str) -> bool:
        checked.append(password)
        return check_password(mechanism, credential, password)

    monkeypatch.setattr(logins, "check_password", check)
    with start(connection_failed_authentication_delay_ms=0) as broker:
        for name in ("alice", "bob", "carol", "dora", "nobody"):
            refuse(broker, name)
    assert checked == ["wrong"] * 5


def test_the_proof_of_a_token_is_hashed_for_unknown_known_and_used_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashed: list[str] = []

    def hash_token(mechanism: str, password: str, salt: bytes) -> ScramCredential:
        hashed.append(mechanism)
        return credential_of(mechanism, password, salt)

    monkeypatch.setattr(delegation_tokens, "credential_of", hash_token)
    mechanism = "SCRAM-SHA-256"
    with start(connection_failed_authentication_delay_ms=0, delegation_token_secret_key="s3cret") as broker:
        with Wire(broker.bootstrap_servers) as wire:
            wire.ask(SaslHandshakeRequest("PLAIN"), 1)
            wire.ask(SaslAuthenticateRequest(b"\0alice\0a"), 2)
            token = wire.ask(CreateDelegationTokenRequest())
        proof = base64.b64encode(bytes(token.hmac)).decode()

        def log_in(name: str, password: str) -> tuple[int, int, int]:
            """Log in with SCRAM. Return the times that a token was hashed until the first answer and the last, and the error code."""
            talk = ScramConversation(mechanism, name, password, "nonce", token=True)
            hashed.clear()
            with Wire(broker.bootstrap_servers) as wire:
                wire.ask(SaslHandshakeRequest(mechanism), 1)
                first = wire.ask(SaslAuthenticateRequest(talk.next(b"") or b""), 2)
                before = len(hashed)
                last = wire.ask(SaslAuthenticateRequest(talk.next(bytes(first.auth_bytes)) or b""), 2)
            return before, len(hashed), last.error_code

        refused = (0, 1, ErrorCode.SASL_AUTHENTICATION_FAILED)
        for name in ("no token", token.token_id, "no token", token.token_id):
            assert log_in(name, "wrong") == refused
        assert [log_in(token.token_id, proof) for _ in range(2)] == [(0, 1, 0), (0, 0, 0)]
        assert log_in(token.token_id, "wrong") == refused


def test_a_rejection_is_sent_one_delay_after_the_message_regardless_of_the_time_of_the_check() -> None:
    due: list[float] = []

    class Timers:
        def schedule(self, when: float, then: object) -> None:
            due.append(when)

    with start() as broker:
        assert broker.server is not None
        authentication: Authentication = broker.server.node.authentication
        authentication._timers = Timers()  # type: ignore[assignment]
        connection = type("Connection", (), {"listener": "SASL_PLAINTEXT", "channel_id": 1, "login": None})()
        login = ConnectionLogin(authentication._listeners["SASL_PLAINTEXT"], 0.0)
        login.received_at = 5.0
        authentication._reject(connection, login, "wrong", lambda answer: None)
    assert due == [5.1]
