"""Both ends of GSSAPI with a context that only counts; `interop/test_kerberos.py` uses a real one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.gssapi import GssapiConversation
from ottla.protocol.sasl.gssapi_server import GssapiServerConversation
from ottla.protocol.sasl.server import Accepted, Step, Work

PRINCIPAL = "alice@REALM"


class Counting:
    """Complete after so many of the other's tokens; a token is its number, and what is wrapped has a mark before it."""

    principal = PRINCIPAL

    def __init__(self, tokens: int, answers: bool = True) -> None:
        self.left, self.answers = tokens, answers

    @property
    def complete(self) -> bool:
        return self.left == 0

    def step(self, token: bytes) -> bytes | None:
        if token != b"token":
            raise SaslError("this is no token")
        self.left -= 1
        return b"token" if self.answers or self.left else None

    def wrap(self, message: bytes) -> bytes:
        return b"wrapped" + message

    def unwrap(self, message: bytes) -> bytes:
        if not message.startswith(b"wrapped"):
            raise SaslError("this is not wrapped")
        return message[len(b"wrapped") :]


def server(tokens: int = 1, answers: bool = True) -> GssapiServerConversation:
    return GssapiServerConversation(lambda: Counting(tokens, answers), lambda name: {PRINCIPAL: "alice"}.get(name))


def done(step: Step) -> Step:
    return step.do() if isinstance(step, Work) else step


def talk(client: GssapiConversation, other: GssapiServerConversation) -> Step:
    message, step = client.next(b""), None
    while message is not None:
        step = done(other.next(message))
        message = client.next(step.answer if isinstance(step, Accepted) else bytes(step))  # type: ignore[arg-type]
    assert step is not None
    return step


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_exchange_ends_after_any_number_of_tokens(rounds: int) -> None:
    client = GssapiConversation(Counting(rounds, answers=False), b"token")
    assert talk(client, server(rounds)) == Accepted("alice")
    assert client.complete


def test_a_server_without_a_last_token_sends_its_offer_at_once() -> None:
    assert done(server(answers=False).next(b"token")) == b"wrapped\x01\0\0\0"


def test_an_authorization_id_must_equal_the_principal() -> None:
    for named, accepted in ((PRINCIPAL, True), ("bob@REALM", False), ("alice", False)):
        other = server(answers=False)
        done(other.next(b"token"))
        choice = other.next(b"wrapped\x01\0\0\0" + named.encode())
        if accepted:
            assert done(choice) == Accepted("alice")
        else:
            with pytest.raises(SaslError, match="authorization id differs"):
                done(choice)


def test_a_principal_that_matches_no_rule_is_rejected() -> None:
    other = GssapiServerConversation(lambda: Counting(1, False), lambda name: None)
    done(other.next(b"token"))
    with pytest.raises(SaslError, match=r"no rule of sasl\.kerberos\.principal\.to\.local\.rules matches alice@REALM"):
        done(other.next(b"wrapped\x01\0\0\0"))


@pytest.mark.parametrize(
    ("offer", "why"),
    [(b"\x06\0\0\0", "demands a security layer"), (b"\x01", "is malformed"), (b"\x01\0\0\0more", "is malformed")],
)
def test_an_unacceptable_security_layer_offer_ends_the_login(offer: bytes, why: str) -> None:
    client = GssapiConversation(Counting(0), b"token")
    client.next(b"")
    with pytest.raises(SaslError, match=why):
        client.next(b"wrapped" + offer)


def test_no_message_before_the_first_token_and_no_other_layer_is_taken() -> None:
    with pytest.raises(SaslError, match="first message is empty"):
        done(server().next(b""))
    other = server(answers=False)
    done(other.next(b"token"))
    with pytest.raises(SaslError, match="that was not offered"):
        done(other.next(b"wrapped\x04\0\xff\xff"))


@given(st.lists(st.binary(max_size=20) | st.sampled_from([b"token", b"", b"wrapped\x01\0\0\0"]), max_size=6))
def test_any_message_is_rejected_or_continues_the_exchange(messages: list[bytes]) -> None:
    other, client = server(2), GssapiConversation(Counting(2), b"token")
    accepted = False
    try:
        for message in messages:
            accepted = isinstance(done(other.next(message)), Accepted)
    except SaslError:
        accepted = False
    if accepted:
        assert b"wrapped\x01\0\0\0" in messages
    try:
        for message in messages:
            if not client.complete:  # a complete exchange has no next message
                client.next(message)
    except SaslError:
        assert not client.complete
