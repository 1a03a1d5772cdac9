from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.admin.config import AdminConfig
from ottla.client.authentication.token_endpoint import TokenError, authorization, parse_response
from ottla.client.authentication.tokens import (
    Token,
    TokenKeeper,
    jwt_expiry,
    refresh_after,
    token_from_file,
    token_from_provider,
)
from ottla.clock import ManualClock
from ottla.config import Password
from ottla.security.security import ClientCredentials
from tests.patience import eventually

CONFIG = AdminConfig(bootstrap_servers=("a:1",))
NOW = 1_700_000_000.0


def jwt(**claims: Any) -> str:
    parts = [json.dumps({"alg": "none"}), json.dumps(claims), ""]
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


class Keeping:
    """A token keeper with a manual clock and counted fetches."""

    def __init__(self, life: float = 1000.0) -> None:
        self.clock = ManualClock()
        self.fetched = 0
        self.life = life
        self.error: Exception | None = None
        self.woken = 0
        self.keeper = TokenKeeper(CONFIG, self.fetch, self.clock, Random(1), self.wake)

    def fetch(self, now: float) -> Token:
        self.fetched += 1
        if self.error is not None:
            raise self.error
        return Token(Password(f"token-{self.fetched}"), self.life)

    def wake(self) -> None:
        self.woken += 1

    def ask(self, how: str = "current_token") -> str | None:
        found: Callable[[float], Token | None] = getattr(self.keeper, how)
        token = found(self.clock.monotonic())
        return None if token is None else token.secret.value

    def awaited(self, how: str = "current_token") -> str | None:
        count = self.woken
        token = self.ask(how)
        if token is None:
            eventually(lambda: self.woken > count)
            token = self.ask(how)
        return token


def test_a_token_is_kept_while_it_is_valid() -> None:
    keeping = Keeping()
    assert keeping.awaited() == "token-1"
    keeping.clock.advance(500)
    assert keeping.ask() == "token-1"
    assert keeping.fetched == 1


def test_a_token_is_replaced_in_the_background_before_its_end() -> None:
    keeping = Keeping()
    keeping.awaited()
    keeping.clock.advance(850)
    assert keeping.ask() == "token-1"
    eventually(lambda: keeping.woken == 2)
    assert keeping.ask() == "token-2"


def test_a_new_session_waits_for_the_token_that_outlives_the_old_one() -> None:
    keeping = Keeping()
    keeping.awaited()
    keeping.clock.advance(850)
    assert keeping.awaited("fresh_token") == "token-2"


def test_a_new_session_uses_a_token_that_arrives_at_that_moment() -> None:
    keeping = Keeping()
    keeping.awaited()
    keeping.clock.advance(850)
    current = keeping.keeper.current_token

    def slow(now: float) -> Token | None:
        token = current(now)
        eventually(lambda: keeping.woken == 2)
        return token

    keeping.keeper.current_token = slow  # type: ignore[method-assign]
    assert keeping.ask("fresh_token") == "token-2"


def test_a_failed_refresh_keeps_the_old_token_while_it_is_valid(caplog: pytest.LogCaptureFixture) -> None:
    keeping = Keeping()
    keeping.awaited()
    keeping.error = TokenError("out of order")
    keeping.clock.advance(850)
    keeping.ask()
    eventually(lambda: keeping.woken == 2)
    assert keeping.ask() == "token-1"
    assert "token refresh failed; the current token is valid for 150 s error=out of order" in caplog.text
    keeping.clock.advance(200)
    keeping.error = None
    assert keeping.awaited() == "token-3"


def test_a_missing_token_is_an_error_and_is_requested_again_later() -> None:
    keeping = Keeping()
    keeping.error = TokenError("out of order")
    with pytest.raises(TokenError, match="out of order"):
        keeping.awaited()
    keeping.error = None
    assert keeping.awaited() == "token-2"


def test_any_exception_of_a_token_provider_is_one_clear_error() -> None:
    keeping = Keeping()
    keeping.error = ZeroDivisionError("oh")
    with pytest.raises(TokenError, match="the token provider failed: ZeroDivisionError: oh"):
        keeping.awaited()


@given(st.floats(1, 1e6), st.integers(0, 2**32))
def test_a_token_is_always_replaced_before_its_end(life: float, seed: int) -> None:
    after = refresh_after(life, CONFIG, Random(seed))
    assert 0 < after <= life
    if life >= 360:
        assert 60 <= after <= life - 300


class Giver:
    async def token(self) -> str:
        return jwt(exp=NOW + 50)


@pytest.mark.parametrize(
    ("provider", "life"),
    [
        (lambda: ("token", NOW * 1000 + 60_000), 60),
        (lambda: jwt(exp=NOW + 100), 100),
        (lambda: "opaque", 300),
        (Giver(), 50),
    ],
)
def test_a_provider_may_be_of_many_kinds(provider: Any, life: float) -> None:
    assert token_from_provider(provider, NOW).life == pytest.approx(life)


@pytest.mark.parametrize(
    ("given_back", "message"),
    [
        (None, "invalid result of the token provider: NoneType"),
        ("", "non-empty text"),
        (("t", "soon"), "expected a number of milliseconds"),
        (("t", NOW), "looks like seconds; multiply it by 1000"),
        (("t", NOW * 1000 - 5000), "expired 5 s before"),
    ],
)
def test_a_provider_that_returns_an_invalid_token_is_reported(given_back: Any, message: str) -> None:
    with pytest.raises(TokenError, match=message):
        token_from_provider(lambda: given_back, NOW)


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(jwt(exp=NOW + 10) + "\n")
    assert token_from_file(str(path), NOW).life == 10
    path.write_text("")
    with pytest.raises(TokenError, match="it is empty"):
        token_from_file(str(path), NOW)
    path.unlink()
    with pytest.raises(TokenError, match="cannot be read: No such file"):
        token_from_file(str(path), NOW)


@given(st.text(max_size=60) | st.builds(lambda claims: "a." + claims + ".b", st.text(max_size=60)))
def test_any_text_has_an_end_or_none(text: str) -> None:
    assert jwt_expiry(text) is None or isinstance(jwt_expiry(text), float)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b"<html>", "without JSON"),
        (200, b"{}", "returned no token"),
        (200, b'{"access_token": 7}', "returned no token"),
        (401, b'{"error": "invalid_client", "secret": "s3cret"}', "HTTP status 401: invalid_client"),
        (302, b"", "HTTP status 302 without JSON"),
        (200, b"[" * 100_000, "without JSON"),
        (200, b" " * 2_000_000, "without JSON"),
    ],
)
def test_a_response_without_a_token_is_one_clear_error(status: int, body: bytes, message: str) -> None:
    with pytest.raises(TokenError, match=message) as caught:
        parse_response("the token endpoint x", status, body)
    assert "s3cret" not in str(caught.value)


def test_a_token_response_may_contain_the_lifetime() -> None:
    assert parse_response("x", 200, b'{"access_token": "t", "expires_in": 60}') == ("t", 60.0)
    assert parse_response("x", 200, b'{"access_token": "t"}') == ("t", None)


@pytest.mark.parametrize(("encoded", "message"), [(False, "a b:s+/="), (True, "a+b:s%2B%2F%3D")])
def test_id_and_secret_are_sent_as_they_are_or_as_the_rfc_has_it(encoded: bool, message: str) -> None:
    asked = ClientCredentials("https://x/", "a b", Password("s+/="), None, encoded)
    assert authorization(asked) == "Basic " + base64.b64encode(message.encode()).decode()
