"""Accepted and rejected logins by each mechanism."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.broker.embedding.embedded_broker import Broker
from ottla.client.network import connection_states
from ottla.errors import (
    AuthenticationError,
    ErrorCode,
    NoBrokersAvailableError,
    SaslAuthenticationError,
    SslAuthenticationError,
)
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from ottla.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.protocol.sasl.scram import ScramConversation
from ottla.protocol.sasl.scram_credential import credential_of
from tests.broker.security.secured import (
    CURVE,
    KEY,
    LISTED,
    LISTED_PASSWORD,
    LISTENERS,
    PASSWORD,
    STRANGER,
    USER,
    Secured,
    bare,
    log_in,
    settings_of,
    token,
)
from tests.certificates import Authority
from tests.patience import eventually

PATIENCE = 60.0


def settings_for(secured: Secured, way: str) -> dict[str, Any]:
    match way:
        case "SSL":
            return secured.at("SSL")
        case "MUTUAL":
            made = secured.authority.certificate("me")
            store = secured.authority.write("client.pem", made.chain + made.key)
            return secured.at("MUTUAL", **{"ssl.keystore.location": store})
        case "PLAIN from a line":
            return secured.login("PLAIN", LISTED, LISTED_PASSWORD)
        case "OAUTHBEARER":
            return secured.at(
                "SASL_SSL", **{"sasl.mechanism": "OAUTHBEARER", "sasl.oauth.token.provider": lambda: token()}
            )
        case "in the clear":
            return secured.login("SCRAM-SHA-512", at="SASL_PLAINTEXT")
    return secured.login(way)


@pytest.mark.parametrize(
    "way",
    ["SSL", "MUTUAL", "PLAIN", "PLAIN from a line", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "in the clear"],
)
def test_records_are_written_and_read_through_every_listener(secured: Secured, way: str) -> None:
    settings, topic = settings_for(secured, way), "t-" + way.lower().replace(" ", "-")
    sent = [b"%d" % n + bytes(size) for n, size in enumerate((0, 1, 70_000, 900_000, 5))]
    with Admin(settings) as admin, Producer(settings) as producer, Consumer(settings) as consumer:
        admin.create_topics([NewTopic(topic, 1, 1)])
        for value in sent:
            producer.send(topic, value)
        producer.flush(PATIENCE)
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        found: list[bytes | None] = []
        deadline = time.monotonic() + PATIENCE
        while len(found) < len(sent) and time.monotonic() < deadline:
            found += [record.value for record in consumer.poll(0.5)]
    assert found == sent


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("name", [USER, "nobody"])
def test_a_wrong_password_is_one_error_for_known_and_unknown_users(secured: Secured, mechanism: str, name: str) -> None:
    with pytest.raises(AuthenticationError, match="name, password or token is wrong"):
        describe_cluster(secured.login(mechanism, name, "wr0ng"))


def test_a_consumer_logs_a_wrong_password_once(secured: Secured, caplog: pytest.LogCaptureFixture) -> None:
    wrong = secured.login("SCRAM-SHA-256", USER, "wr0ng")
    with Consumer({**wrong, "group.id": "g"}) as consumer:
        consumer.subscribe(["t"])
        with pytest.raises(AuthenticationError):
            consumer.poll(60.0)
    assert len([line for line in caplog.messages if "it rejected the login" in line]) == 1


@pytest.mark.parametrize("settings", ["password", "authority", "no TLS", "no login"])
def test_a_transactional_producer_reports_a_rejected_login_at_once(
    secured: Secured, tmp_path: Path, settings: str
) -> None:
    wrong = {
        "password": secured.login("SCRAM-SHA-256", USER, "wr0ng"),
        "authority": secured.at("SSL") | {"ssl.truststore.location": Authority(tmp_path).file},
        "no TLS": secured.at("SSL") | {"security.protocol": "PLAINTEXT"},
        "no login": secured.at("SASL_PLAINTEXT") | {"security.protocol": "PLAINTEXT"},
    }[settings]
    with Producer({**wrong, "transactional.id": "t"}) as producer:
        for _ in range(2):
            with pytest.raises((AuthenticationError, NoBrokersAvailableError)) as caught:
                producer.init_transactions(PATIENCE)
            assert "within" not in str(caught.value)  # the time that was given


def test_a_transactional_producer_continues_when_its_login_succeeds_later(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_states, "REFUSAL_PAUSE", 0.1)
    trusted = tmp_path / "ca.pem"
    trusted.write_text(Authority(tmp_path).pem)
    given = {"ssl.truststore.location": str(trusted), "transactional.id": "later"}

    def initialised() -> bool:
        try:
            producer.init_transactions(PATIENCE)
        except SslAuthenticationError:
            return False
        return True

    with Producer({**secured.at("SSL"), **given}) as producer:
        assert not initialised()
        trusted.write_text(secured.authority.pem)
        eventually(initialised)


def describe_cluster(settings: dict[str, Any]) -> None:
    with Admin(settings) as admin:
        admin.list_topics()


def tokens_that_will_not_do() -> dict[str, str]:
    now = time.time()
    unsigned = token().rsplit(".", 1)[0].split(".")[1]
    return {
        "signed by nobody": f"eyJhbGciOiJub25lIn0.{unsigned}.",
        "signed by a stranger with the same key id": token(STRANGER),
        "for somebody else": token(aud="another"),
        "for nobody": token(aud=None),
        "made by somebody else": token(iss="you"),
        "expired": token(iat=now - 900, exp=now - 600),
        "without an end": token(exp=None),
        "of tomorrow": token(nbf=now + 86_400),
        "nameless": token(sub=None),
        "huge": token(junk="x" * 12_400),
        "none at all": "abc",
    }


@pytest.mark.parametrize("fault", tokens_that_will_not_do())
def test_an_invalid_token_is_rejected(secured: Secured, fault: str) -> None:
    settings = secured.at(
        "SASL_SSL",
        **{"sasl.mechanism": "OAUTHBEARER", "sasl.oauth.token.provider": lambda: tokens_that_will_not_do()[fault]},
    )
    with pytest.raises(AuthenticationError):
        describe_cluster(settings)


def test_audience_and_issuer_are_not_checked_if_the_settings_say_so(authority: Authority, tmp_path: Path) -> None:
    settings = settings_of(authority, tmp_path)
    settings |= {"sasl_oauthbearer_allow_unverified_audience": True, "sasl_oauthbearer_allow_unverified_issuer": True}
    with Broker(listen=LISTENERS, **settings) as broker:
        loose = Secured(broker, authority, tmp_path)
        for made in (token(aud="another", iss="you"), token(aud=None, iss=None)):
            given = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauth.token.provider": lambda made=made: made}
            describe_cluster(loose.at("SASL_SSL", **given))
        with pytest.raises(AuthenticationError):
            describe_cluster(
                loose.at(
                    "SASL_SSL",
                    **{"sasl.mechanism": "OAUTHBEARER", "sasl.oauth.token.provider": lambda: token(STRANGER)},
                )
            )


def test_a_token_signed_with_any_of_the_keys_is_accepted(secured: Secured) -> None:
    made = token(CURVE, "ES256", aud=["x", "kafka"])
    describe_cluster(
        secured.at("SASL_SSL", **{"sasl.mechanism": "OAUTHBEARER", "sasl.oauth.token.provider": lambda: made})
    )
    assert KEY.kid != CURVE.kid


def test_only_login_requests_are_accepted_before_a_login(secured: Secured) -> None:
    with secured.wire("SASL_PLAINTEXT") as wire:
        assert wire.ask(ApiVersionsRequest("a", "1"), 3).error_code == 0
        wire.send(MetadataRequest([]))
        assert wire.hung_up()


def test_a_frame_above_the_login_limit_closes_the_connection_before_the_login_only(secured: Secured) -> None:
    with secured.wire("SASL_PLAINTEXT") as wire:
        wire.socket.sendall((20_001).to_bytes(4, "big"))
        assert wire.hung_up()
    with secured.wire("SASL_PLAINTEXT") as wire:
        assert log_in(wire).error_code == 0
        wire.ask(MetadataRequest([]))
        wire.create("large")
        assert wire.produce("large", bytes(100_000)).error_code == 0


def test_a_login_message_out_of_order_is_rejected(secured: Secured) -> None:
    with secured.wire("SASL_PLAINTEXT") as wire:
        assert wire.ask(SaslAuthenticateRequest(b"x"), 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
        reported = wire.ask(SaslHandshakeRequest("GSSAPI"), 1)
        assert reported.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert set(reported.mechanisms) == {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}
        assert log_in(wire).error_code == 0


def test_a_rejected_login_is_answered_and_then_the_connection_is_closed(secured: Secured) -> None:
    with secured.wire("SASL_PLAINTEXT") as wire:
        answer = log_in(wire, "PLAIN", USER, "wr0ng")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert wire.hung_up()


def test_the_oldest_handshake_is_followed_by_messages_without_headers(secured: Secured) -> None:
    with secured.wire("SASL_PLAINTEXT") as wire:
        assert wire.ask(SaslHandshakeRequest("SCRAM-SHA-512"), 0).error_code == 0
        talk = ScramConversation("SCRAM-SHA-512", USER, PASSWORD, "n0nce")
        final = talk.next(bare(wire, talk.next(b"") or b""))
        assert talk.next(bare(wire, final or b"")) is None
        assert talk.complete
        assert wire.ask(MetadataRequest([])).brokers
    with secured.wire("SASL_PLAINTEXT") as wire:
        wire.ask(SaslHandshakeRequest("PLAIN"), 0)
        wire.send_frame(b"\0alice\0wr0ng")
        assert wire.hung_up()


def test_a_repeated_login_must_be_of_the_same_user(secured: Secured) -> None:
    with secured.wire("SASL_SSL") as wire:
        assert log_in(wire, "PLAIN").error_code == 0
        assert log_in(wire, "SCRAM-SHA-256").error_code == 0
        assert wire.ask(MetadataRequest([])).brokers
        assert log_in(wire, "PLAIN", LISTED, LISTED_PASSWORD).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert wire.hung_up()


def test_plaintext_on_a_tls_port_and_the_reverse_are_reported_at_once(secured: Secured) -> None:
    for settings, kind in (
        ({"bootstrap.servers": secured.broker.addresses["SSL"]}, NoBrokersAvailableError),
        ({**secured.at("SSL"), "bootstrap.servers": secured.broker.addresses["PLAINTEXT"]}, SslAuthenticationError),
        ({**secured.at("SASL_SSL"), "security.protocol": "SSL"}, SaslAuthenticationError),
        (secured.at("MUTUAL"), SslAuthenticationError),
    ):
        started = time.monotonic()
        with pytest.raises(kind, match=r"security\.protocol|certificate"):
            describe_cluster(settings)
        assert time.monotonic() - started < PATIENCE


def upsertion(name: str, password: str, **more: Any) -> ScramCredentialUpsertion:
    import hashlib

    iterations = more.get("iterations", 4096)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", max(iterations, 1))
    return ScramCredentialUpsertion(name, more.get("mechanism", 1), iterations, more.get("salt", b"salt"), salted)


def test_passwords_are_created_changed_and_deleted(secured: Secured) -> None:
    with secured.wire("PLAINTEXT") as wire:
        for password in ("f1rst", "s3cond"):
            changed = wire.ask(AlterUserScramCredentialsRequest((), [upsertion("carol", password)]))
            assert [(each.user, each.error_code) for each in changed.results] == [("carol", 0)]
            describe_cluster(secured.login("SCRAM-SHA-256", "carol", password))
            describe_cluster(secured.login("PLAIN", "carol", password))
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            with pytest.raises(AuthenticationError):
                describe_cluster(secured.login(mechanism, "carol", "f1rst"))
        reported = wire.ask(DescribeUserScramCredentialsRequest([UserName("carol"), UserName("nobody")]))
        assert [(each.user, each.error_code) for each in reported.results] == [
            ("carol", 0),
            ("nobody", ErrorCode.RESOURCE_NOT_FOUND),
        ]
        (info,) = reported.results[0].credential_infos
        assert (info.mechanism, info.iterations) == (1, 4096)
        everybody = {each.user for each in wire.ask(DescribeUserScramCredentialsRequest(None)).results}
        assert {"alice", "carol"} <= everybody
        gone = wire.ask(AlterUserScramCredentialsRequest([ScramCredentialDeletion("carol", 1)], ()))
        assert gone.results[0].error_code == 0
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        with pytest.raises(AuthenticationError):
            describe_cluster(secured.login(mechanism, "carol", "s3cond"))


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (upsertion("dave", "x", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("dave", "x", iterations=16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialUpsertion("dave", 1, 10**9, b"salt", b"x" * 32), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("", "x"), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("dave", "x", salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramCredentialUpsertion("dave", 2, 4096, b"salt", b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("dave", "x", mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (ScramCredentialDeletion("dave", 1), ErrorCode.RESOURCE_NOT_FOUND),
    ],
)
def test_an_invalid_password_is_rejected(secured: Secured, wanted: Any, code: int) -> None:
    deletions = [wanted] if isinstance(wanted, ScramCredentialDeletion) else []
    upsertions = [] if deletions else [wanted, upsertion("erin", "x")]
    with secured.wire("PLAINTEXT") as wire:
        first, *others = wire.ask(AlterUserScramCredentialsRequest(deletions, upsertions)).results
    assert first.error_code == code
    assert [each.error_code for each in others] == [0] * len(others)
    assert credential_of("SCRAM-SHA-256", "x", b"salt").iterations == 4096


def test_a_token_authenticates_its_owner_until_it_expires(secured: Secured) -> None:
    import base64

    with secured.wire("SASL_SSL") as wire:
        log_in(wire)
        made = wire.ask(CreateDelegationTokenRequest(max_lifetime_ms=60_000))
        assert (made.error_code, made.principal_name) == (0, USER)
        (seen,) = wire.ask(DescribeDelegationTokenRequest(None)).tokens
        assert (seen.token_id, bytes(seen.hmac)) == (made.token_id, bytes(made.hmac))
        renewed = wire.ask(RenewDelegationTokenRequest(made.hmac, 30_000))
        assert renewed.expiry_timestamp_ms <= made.max_timestamp_ms
        password = base64.b64encode(made.hmac).decode()
        with secured.wire("SASL_SSL") as other:
            other.ask(SaslHandshakeRequest("SCRAM-SHA-512"), 1)
            talk = ScramConversation("SCRAM-SHA-512", made.token_id, password, "n0nce", token=True)
            first = other.ask(SaslAuthenticateRequest(talk.next(b"") or b""), 2)
            final = talk.next(bytes(first.auth_bytes)) or b""
            last = other.ask(SaslAuthenticateRequest(final), 2)
            assert 0 < last.session_lifetime_ms <= 30_000
            refused = other.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1))
            assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert wire.ask(ExpireDelegationTokenRequest(made.hmac, -1)).error_code == 0
        again = wire.ask(RenewDelegationTokenRequest(made.hmac, 30_000))
        assert again.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    with secured.wire("PLAINTEXT") as wire:
        refused = wire.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1))
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_token_is_described_in_every_version(secured: Secured, version: int) -> None:
    with secured.wire("SASL_SSL") as wire:
        log_in(wire)
        made = wire.ask(CreateDelegationTokenRequest(max_lifetime_ms=60_000), version)
        tokens = {each.token_id: each for each in wire.ask(DescribeDelegationTokenRequest(None), version).tokens}
        wire.ask(ExpireDelegationTokenRequest(made.hmac, -1))
    seen = tokens[made.token_id]
    assert (made.error_code, made.principal_name, seen.principal_name) == (0, USER, USER)
    requester = USER if version >= 3 else ""
    assert (made.token_requester_principal_name, seen.token_requester_principal_name) == (requester, requester)
