"""The server's side of SCRAM with Ottla's client, and with clients that send wrong messages."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.oauthbearer_server import OAuthBearerServerConversation
from ottla.protocol.sasl.plain_server import PlainServerConversation
from ottla.protocol.sasl.scram import ScramConversation
from ottla.protocol.sasl.scram_credential import MECHANISMS, ScramCredential, credential_of, decoy, is_password
from ottla.protocol.sasl.scram_server import ScramServerConversation
from ottla.protocol.sasl.server import Accepted, KnownUser, PasswordShown, TokenShown

PASSWORDS = {"alice": "al1ce", "a,b=c": "päss,wörd="}
KNOWN = {
    (mechanism, name): credential_of(mechanism, password, b"0123456789abcdef")
    for mechanism in MECHANISMS.values()
    for name, password in PASSWORDS.items()
}
BY_MECHANISM = pytest.mark.parametrize("mechanism", MECHANISMS.values())


def server(mechanism: str, nonce: str = "server") -> ScramServerConversation:
    def find(name: str, by_token: bool) -> KnownUser | None:
        found = KNOWN.get((mechanism, name))
        return None if found is None or by_token else KnownUser(name, found)

    return ScramServerConversation(mechanism, find, nonce, b"secret")


def first_and_final(
    mechanism: str, name: str, password: str, at: ScramServerConversation
) -> tuple[ScramConversation, bytes]:
    client = ScramConversation(mechanism, name, password, "client")
    challenge = at.next(client.next(b"") or b"")
    assert isinstance(challenge, bytes)
    return client, client.next(challenge) or b""


@BY_MECHANISM
@pytest.mark.parametrize("name", PASSWORDS)
def test_client_and_server_authenticate_each_other(mechanism: str, name: str) -> None:
    at = server(mechanism)
    client, final = first_and_final(mechanism, name, PASSWORDS[name], at)
    accepted = at.next(final)
    assert isinstance(accepted, Accepted)
    assert accepted.user == name
    client.next(accepted.answer)
    assert client.complete


def test_the_conversation_of_the_rfc_is_ours() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    user = KnownUser("user", credential_of("SCRAM-SHA-256", "pencil", salt))
    at = ScramServerConversation("SCRAM-SHA-256", lambda name, by_token: user, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b"")
    assert at.next(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert at.next(final) == Accepted("user", b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@BY_MECHANISM
def test_a_wrong_password_and_an_unknown_name_are_refused_in_the_same_words(mechanism: str) -> None:
    reported = []
    for name in ("alice", "nobody"):
        at = server(mechanism)
        _, final = first_and_final(mechanism, name, "wrong", at)
        with pytest.raises(SaslError) as refused:
            at.next(final)
        reported.append(str(refused.value))
    assert reported[0] == reported[1]


def test_an_unknown_user_gets_the_same_salt_each_time_and_a_different_one_than_others() -> None:
    assert decoy("SCRAM-SHA-256", b"s", "x") == decoy("SCRAM-SHA-256", b"s", "x") != decoy("SCRAM-SHA-256", b"s", "y")


def test_cve_2024_56128_a_captured_proof_cannot_be_replayed() -> None:
    """The server's nonce is another one each time, and the final message must repeat it."""
    first = server("SCRAM-SHA-256", "one")
    client, final = first_and_final("SCRAM-SHA-256", "alice", "al1ce", first)
    again = server("SCRAM-SHA-256", "two")
    again.next(b"n,,n=alice,r=client")
    with pytest.raises(SaslError, match="nonce"):
        again.next(final)
    for nonce in (b"client", b"one", b"clientoneone", b""):
        at = server("SCRAM-SHA-256", "one")
        at.next(b"n,,n=alice,r=client")
        with pytest.raises(SaslError, match="nonce"):
            at.next(final.replace(b"r=clientone", b"r=" + nonce))
    assert not client.complete


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"p=tls-unique,,n=alice,r=x",
        b"n,a=bob,n=alice,r=x",
        b"n,,m=1,n=alice,r=x",
        b"n,,n=,r=x",
        b"n,,n=al=ice,r=x",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=\xc3\xa4",
        b"n,,n=alice",
        b"\xff\xfe",
        b"n,,n=alice,r=" + b"x" * 300,
        b"n,,n=" + b"a" * 9000 + b",r=x",
    ],
)
def test_a_first_message_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        server("SCRAM-SHA-512").next(message)


@pytest.mark.parametrize("at", [server("SCRAM-SHA-256"), PlainServerConversation(), OAuthBearerServerConversation()])
@given(message=st.binary(max_size=200))
def test_any_bytes_are_answered_or_refused(at: object, message: bytes) -> None:
    try:
        at.next(message)  # type: ignore[attr-defined]
    except SaslError:
        pass


@settings(max_examples=200)
@given(place=st.integers(0, 150), value=st.integers(0, 255))
def test_a_damaged_proof_is_refused(place: int, value: int) -> None:
    at = server("SCRAM-SHA-256")
    _, final = first_and_final("SCRAM-SHA-256", "alice", "al1ce", at)
    damaged = bytearray(final)
    damaged[place % len(final)] = value
    if meaning_of(bytes(damaged)) == meaning_of(final):
        return  # of the last character of Base64 some bits count for nothing
    with pytest.raises(SaslError):
        at.next(bytes(damaged))


def meaning_of(final: bytes) -> tuple[bytes, bytes]:
    """Return the part before the proof, and the proof's bytes, or its text if it is no Base64."""
    said, _, proof = final.rpartition(b",p=")
    try:
        return said, base64.b64decode(proof, validate=True)
    except ValueError:
        return said, proof


def test_a_stored_credential_shows_no_secret_and_verifies_its_password() -> None:
    kept = KNOWN["SCRAM-SHA-512", "alice"]
    assert is_password("SCRAM-SHA-512", kept, "al1ce")
    assert not is_password("SCRAM-SHA-512", kept, "al1cf")
    assert "hidden" in repr(kept)
    assert isinstance(kept, ScramCredential)


def test_plain_credentials_are_parsed_and_never_printed() -> None:
    shown = PlainServerConversation().next(b"\0alice\0s3cret")
    assert shown == PasswordShown("alice", "s3cret")
    assert "s3cret" not in repr(shown)
    assert PlainServerConversation().next(b"alice\0alice\0x") == PasswordShown("alice", "x")
    for wrong in (b"", b"\0alice", b"bob\0alice\0x", b"\0\0x", b"\0alice\0", b"\0a\0b\0c", b"\0\xff\0x"):
        with pytest.raises(SaslError):
            PlainServerConversation().next(wrong)


def test_a_token_is_parsed_and_a_refused_one_gets_a_last_message() -> None:
    at = OAuthBearerServerConversation()
    shown = at.next(b"n,,\x01auth=Bearer a.b.c\x01logicalCluster=lkc\x01\x01")
    assert shown == TokenShown("a.b.c")
    assert "a.b.c" not in repr(shown)
    assert at.refuse("it has expired") == b'{"status": "invalid_token"}'
    with pytest.raises(SaslError, match="expired"):
        at.next(b"\x01")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b",",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01",
        b"p=x,,\x01auth=Bearer a\x01\x01",
        b"n,a=bob,\x01auth=Bearer a\x01\x01",
        b"n,,\x01auth=Bearer a\x01",
        b"n,,\x01auth=Bearer a\x01n0=x\x01\x01",
    ],
)
def test_a_token_that_is_none_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        OAuthBearerServerConversation().next(message)
