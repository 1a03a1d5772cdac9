from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.oauthbearer import OAuthBearerConversation
from ottla.protocol.sasl.plain import PlainConversation


def test_plain_is_name_and_password_between_nuls() -> None:
    login = PlainConversation("alice", "sécret")
    assert login.next(b"") == "\0alice\0sécret".encode()
    assert not login.complete
    assert login.next(b"") is None
    assert login.complete


@pytest.mark.parametrize(("user", "password"), [("a\0b", "p"), ("a", "p\0q")])
def test_plain_refuses_what_would_be_read_as_another_user(user: str, password: str) -> None:
    with pytest.raises(SaslError, match="NUL"):
        PlainConversation(user, password)


def test_a_token_is_sent_as_the_rfc_and_kafkas_extensions_have_it() -> None:
    login = OAuthBearerConversation("ab.cd-_~+/==", {"logicalCluster": "lkc-1", "identityPoolId": "pool-2"})
    assert login.next(b"") == (
        b"n,,\x01auth=Bearer ab.cd-_~+/==\x01logicalCluster=lkc-1\x01identityPoolId=pool-2\x01\x01"
    )
    assert login.next(b"") is None
    assert login.complete


def test_a_refused_token_gets_a_last_message_and_then_the_reason() -> None:
    login = OAuthBearerConversation("token")
    login.next(b"")
    assert login.next(b'{"status":"invalid_token","scope":"kafka"}') == b"\x01"
    assert not login.complete
    assert login.refusal == "the server rejected the token (status = invalid_token, scope = kafka)"
    with pytest.raises(SaslError, match="invalid_token"):
        login.next(b"")
    assert not login.complete


@pytest.mark.parametrize("token", ["", "a b", "a\x01b", "a\nb", "ü", "a=b"])
def test_a_token_that_could_end_its_line_is_not_sent(token: str) -> None:
    with pytest.raises(SaslError, match="token contains invalid characters") as caught:
        OAuthBearerConversation(token)
    assert token not in str(caught.value) or not token


@pytest.mark.parametrize(("name", "value"), [("auth", "x"), ("", "x"), ("a1", "x"), ("a", ""), ("a", "x\x01y")])
def test_an_extension_that_could_be_taken_for_another_is_not_sent(name: str, value: str) -> None:
    with pytest.raises(SaslError, match="extension"):
        OAuthBearerConversation("token", {name: value})


@given(st.binary(min_size=1, max_size=80))
def test_any_server_message_becomes_one_printable_error(challenge: bytes) -> None:
    login = OAuthBearerConversation("token")
    login.next(b"")
    assert login.next(challenge) == b"\x01"
    assert (login.refusal or "").isprintable()
    assert not login.complete
