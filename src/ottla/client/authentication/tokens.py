"""Tokens for OAUTHBEARER: fetched on a background thread, cached, and refreshed before they expire.

The methods of `TokenKeeper` never block. A token is a secret: no error and no log line contains it.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import logging
import math
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct

from ottla.client.authentication.token_endpoint import (
    RetriableTokenError,
    TokenError,
    https_context,
    request_token,
)
from ottla.clock import Clock
from ottla.config import Password
from ottla.security.security import client_credentials
from ottla.security.security_config import SecurityConfig

LOG = logging.getLogger(__name__)
MAX_TOKEN_CHARACTERS = 1024 * 1024
DEFAULT_LIFETIME_SECONDS = 300.0
"""The lifetime in seconds of a token that states none."""
Fetch = Callable[[float], "Token"]
"""Return a token; the argument is the time in seconds since 1970. Blocks. Raises TokenError."""


class Token(Struct, frozen=True):
    """A token and its lifetime."""

    secret: Password
    life: float
    """Seconds after it was fetched."""


class TokenKeeper:
    """The cached token of one client."""

    def __init__(
        self, config: SecurityConfig, fetch: Fetch, clock: Clock, random: Random, wake: Callable[[], None]
    ) -> None:
        self._config = config
        self._fetch = fetch
        self._clock = clock
        self._random = random
        self._wake = wake
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._expires = self._refresh_at = -math.inf
        self._error: Exception | None = None
        self._fetching = False

    @property
    def has_token(self) -> bool:
        """True if a token was fetched before."""
        return self._token is not None

    def current_token(self, now: float) -> Token | None:
        """Return a token that is valid now, or None while one is fetched; `wake` is called afterwards.

        Raises TokenError.

        Starts to fetch the next token before this one expires.
        """
        with self._lock:
            if self._error is not None:
                error, self._error = self._error, None
                if now >= self._expires:
                    raise error
                LOG.warning(
                    "token refresh failed; the current token is valid for %.0f s error=%s", self._expires - now, error
                )
            if now >= self._refresh_at and not self._fetching:
                self._fetching = True
                threading.Thread(target=self._run, name="ottla-token-refresh", daemon=True).start()
            return self._token if now < self._expires else None

    def fresh_token(self, now: float) -> Token | None:
        """Return a token as `current_token` does, but None if its refresh is due: a new session should outlive the old token."""
        self.current_token(now)
        with self._lock:  # a refresh may have ended after `current_token` returned
            is_due = self._fetching and now >= self._refresh_at
            return None if is_due or now >= self._expires else self._token

    def _run(self) -> None:
        token, error = None, None
        try:
            token = self._fetch_with_retries()
        except TokenError as failure:
            error = failure
        except BaseException as reason:  # the user's function may raise any error; it is raised again in the login
            error = TokenError(f"the token provider failed: {type(reason).__name__}: {reason}")
        now = self._clock.monotonic()
        with self._lock:
            self._fetching, self._error = False, error
            if token is not None:
                self._token = token
                self._expires = now + token.life
                self._refresh_at = now + refresh_after(token.life, self._config, self._random)
            else:
                self._refresh_at = now + max(1.0, self._config.sasl_login_retry_backoff_max_ms / 1000)
                if now >= self._expires:
                    self._refresh_at = -math.inf
        self._wake()

    def _fetch_with_retries(self) -> Token:
        """Fetch a token.

        Temporary errors are retried with exponential backoff up to `sasl.login.retry.backoff.max.ms` in total.
        """
        backoff_ms, waited_ms = max(1, self._config.sasl_login_retry_backoff_ms), 0
        while True:
            try:
                return self._fetch(self._clock.wall_ms() / 1000)
            except RetriableTokenError:
                if waited_ms + backoff_ms > self._config.sasl_login_retry_backoff_max_ms:
                    raise
                threading.Event().wait(backoff_ms / 1000)
                waited_ms, backoff_ms = waited_ms + backoff_ms, backoff_ms * 2


def refresh_after(life: float, config: SecurityConfig, random: Random) -> float:
    """Return the seconds after which a token is refreshed, from the four `sasl.login.refresh.*` settings of Kafka."""
    factor = config.sasl_login_refresh_window_factor + config.sasl_login_refresh_window_jitter * random.random()
    planned = life * min(factor, 1.0)
    least, before = config.sasl_login_refresh_min_period_seconds, config.sasl_login_refresh_buffer_seconds
    if least + before > life:  # the lifetime is too short for the minimum period and the buffer
        return planned
    return min(max(planned, least), life - before)


def token_fetcher(config: SecurityConfig) -> Fetch:
    """Return the function that fetches tokens from the configured source."""
    if config.sasl_oauth_token_provider is not None:
        return lambda now: token_from_provider(config.sasl_oauth_token_provider, now)
    if config.sasl_oauthbearer_token_file is not None:
        place = config.sasl_oauthbearer_token_file
        return lambda now: token_from_file(place, now)
    credentials = client_credentials(config)
    assert credentials is not None
    context = https_context(config.https_ca_location)
    connect, read = config.sasl_login_connect_timeout_ms / 1000, config.sasl_login_read_timeout_ms / 1000

    def fetch(now: float) -> Token:
        text, span = request_token(credentials, context, connect, read)
        return make_token(text, now, None if span is None else now + span)

    return fetch


def token_from_provider(provider: Any, now: float) -> Token:
    """Call the user's token provider. It returns a token, or a token and its expiry in milliseconds since 1970."""
    result = provider() if callable(provider) else provider.token()
    if inspect.isawaitable(result):
        result = asyncio.run(await_result(result))
    text, expires_ms = result if isinstance(result, tuple) and len(result) == 2 else (result, None)
    if not isinstance(text, str) or not text:
        raise TokenError(
            f"invalid result of the token provider: {type(result).__name__}; expected non-empty text or (text, milliseconds)"
        )
    if expires_ms is None:
        return make_token(text, now, None)
    if isinstance(expires_ms, bool) or not isinstance(expires_ms, int | float):
        raise TokenError("invalid expiry from the token provider: expected a number of milliseconds since 1970")
    if expires_ms < 1e11:
        raise TokenError(
            f"invalid expiry {expires_ms} from the token provider: expected milliseconds since 1970, this looks "
            f"like seconds; multiply it by 1000"
        )
    return make_token(text, now, expires_ms / 1000)


async def await_result(result: Any) -> Any:
    return await result


def token_from_file(place: str, now: float) -> Token:
    """Read a token from a file."""
    path = Path(place)
    try:
        if path.stat().st_size > MAX_TOKEN_CHARACTERS:
            raise TokenError(f"sasl.oauthbearer.token.file = {place}: it is too large for a token")
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not ASCII text"
        raise TokenError(f"sasl.oauthbearer.token.file = {place}: it cannot be read: {reason}") from None
    if not text:
        raise TokenError(f"sasl.oauthbearer.token.file = {place}: it is empty")
    return make_token(text, now, None)


def make_token(text: str, now: float, expires: float | None) -> Token:
    """Return a token with its lifetime: until `expires`, else as the JWT states, else `DEFAULT_LIFETIME_SECONDS`."""
    end = jwt_expiry(text) if expires is None else expires
    life = DEFAULT_LIFETIME_SECONDS if end is None else end - now
    if life <= 0:
        raise TokenError(
            f"the token expired {-life:.0f} s before it was received; check the clock of this machine and the token source"
        )
    return Token(Password(text), life)


def jwt_expiry(text: str) -> float | None:
    """Return the `exp` claim of a JWT in seconds since 1970, or None.

    The token is not verified here; the broker verifies it.
    """
    parts = text.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        end = claims.get("exp") if isinstance(claims, dict) else None
        return float(end) if isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) else None
    except (ValueError, RecursionError, OverflowError):
        return None
