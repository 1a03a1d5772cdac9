from __future__ import annotations

import base64
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.net.sasl.scram import ScramClient

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.scram import ScramConversation
from tests.protocol.sasl.scram_server import ScramServer

BOTH = pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
RFC_7677 = (
    b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
SALT = base64.b64encode(b"salt").decode()


def talk(mechanism: str = "SCRAM-SHA-256", password: str = "pencil", nonce: str = "abc") -> ScramConversation:
    return ScramConversation(mechanism, "user", password, nonce)


def after_first(**settings: str) -> ScramConversation:
    client = talk(**settings)
    client.next(b"")
    return client


def test_the_conversation_is_the_one_of_the_rfc() -> None:
    client = talk(nonce="rOprNGfwEbeRWgbNEkqO")
    assert client.next(b"") == RFC_7677[0]
    assert client.next(RFC_7677[1]) == RFC_7677[2]
    assert not client.complete
    assert client.next(RFC_7677[3]) is None
    assert client.complete


@BOTH
def test_every_message_is_that_of_kafka_python(mechanism: str) -> None:
    theirs = ScramClient("user", "pässword", mechanism)
    ours = talk(mechanism, "pässword", theirs.nonce.decode())
    first = theirs.first_message()
    assert ours.next(b"") == first
    answer = ScramServer(mechanism, "user", "pässword").answer_first(first)
    theirs.process_server_first_message(answer)
    assert ours.next(answer) == theirs.final_message()
    ours.next(b"v=" + base64.b64encode(theirs.server_signature))
    assert ours.complete


@BOTH
def test_a_strict_server_accepts_the_client(mechanism: str) -> None:
    client, server = talk(mechanism), ScramServer(mechanism, "user", "pencil")
    final = client.next(server.answer_first(client.next(b"") or b""))
    assert client.next(server.answer_final(final or b"")) is None
    assert client.complete


def test_a_wrong_password_is_reported_by_the_server() -> None:
    client, server = talk(password="wrong"), ScramServer("SCRAM-SHA-256", "user", "pencil")
    final = client.next(server.answer_first(client.next(b"") or b""))
    with pytest.raises(SaslError, match="the server rejected the proof: invalid-proof"):
        client.next(server.answer_final(final or b""))
    assert not client.complete


def test_a_server_that_does_not_know_the_password_is_not_trusted() -> None:
    client = after_first()
    client.next(f"r=abcdef,s={SALT},i=4096".encode())
    with pytest.raises(SaslError, match="the server's signature is wrong"):
        client.next(b"v=" + base64.b64encode(bytes(32)))
    assert not client.complete


def test_a_server_without_a_final_signature_is_not_trusted() -> None:
    client = after_first()
    client.next(f"r=abcdef,s={SALT},i=4096".encode())
    with pytest.raises(SaslError, match="has no signature"):
        client.next(b"")
    assert not client.complete


@pytest.mark.parametrize("nonce", ["", "abc", "abX", "xabcdef", "ABCdef"])
def test_a_nonce_that_does_not_continue_ours_ends_the_login(nonce: str) -> None:
    with pytest.raises(SaslError, match="nonce does not continue the client's nonce"):
        after_first().next(f"r={nonce},s={SALT},i=4096".encode())


@pytest.mark.parametrize("iterations", ["1", "4095", "262145", "1000000000", "999999999999999999"])
def test_iterations_out_of_bounds_are_refused_before_the_work(iterations: str) -> None:
    with pytest.raises(SaslError, match=f"demands {iterations} iterations"):
        after_first().next(f"r=abcd,s={SALT},i={iterations}".encode())


@pytest.mark.parametrize("iterations", ["", "-1", "0", "04096", "4096.0", "٤٠٩٦", "1" * 19, "4096x"])
def test_iterations_that_are_no_number_are_refused(iterations: str) -> None:
    with pytest.raises(SaslError, match="not a number"):
        after_first().next(f"r=abcd,s={SALT},i={iterations}".encode())


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("m=ext,r=abcd,s=c2FsdA==,i=4096", "an unknown SCRAM extension"),
        ("s=c2FsdA==,r=abcd,i=4096", "not a SCRAM message"),
        ("r=abcd,i=4096", "not a SCRAM message"),
        ("", "not a SCRAM message"),
        ("r=abcd,s=,i=4096", "salt is empty"),
        ("r=abcd,s=c2F*dA==,i=4096", "salt is not Base64"),
        ("e=unknown-user", "rejected the user: unknown-user"),
        ("r=abcd," * 2000, "too long"),
    ],
)
def test_a_first_message_of_another_form_is_refused(message: str, expected: str) -> None:
    with pytest.raises(SaslError, match=expected):
        after_first().next(message.encode())


def test_channel_binding_is_neither_supported_nor_requested() -> None:
    client = talk()
    assert (client.next(b"") or b"").startswith(b"n,,")
    final = client.next(f"r=abcdef,s={SALT},i=4096".encode())
    assert (final or b"").startswith(b"c=biws,")


def test_a_name_with_commas_and_equals_signs_is_escaped() -> None:
    client = ScramConversation("SCRAM-SHA-256", "a=b,c", "p", "abc")
    assert client.next(b"") == b"n,,n=a=3Db=2Cc,r=abc"


def test_a_login_with_a_delegation_token_is_marked_as_such() -> None:
    client = ScramConversation("SCRAM-SHA-256", "id", "hmac", "abc", token=True)
    assert client.next(b"") == b"n,,n=id,r=abc,tokenauth=true"


@given(st.integers(0, 2**32), st.integers(1, 3), st.booleans())
def test_mutated_messages_are_one_error_and_never_a_login(seed: int, changes: int, late: bool) -> None:
    chance = Random(seed)
    client = talk(nonce="rOprNGfwEbeRWgbNEkqO")
    client.next(b"")
    if late:
        client.next(RFC_7677[1])
    original = RFC_7677[3 if late else 1]
    message = bytearray(original)
    for _ in range(changes):
        message[chance.randrange(len(message))] = chance.randrange(256)
    try:
        client.next(bytes(message))
        if not late:
            client.next(RFC_7677[3])
    except SaslError:
        assert not client.complete
    else:
        assert same_meaning(bytes(message), original)


def same_meaning(message: bytes, original: bytes) -> bool:
    """Base64 leaves bits of the last letter open, and what follows the signature may be an extension."""
    return (
        base64.b64decode(message[2:].split(b",")[0]) == base64.b64decode(original[2:])
        if message[:2] == b"v="
        else (message == original)
    )
