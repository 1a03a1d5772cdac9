"""Tokens for OAUTHBEARER: fetched on a thread, kept while they are good, replaced before they are not.

`TokenKeeper` is asked and never waits. A token is a secret: it is in no error and no log.
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
    PassingTokenError,
    TokenError,
    ask_for_token,
    https_context,
)
from ottla.clock import Clock
from ottla.config import Password
from ottla.security.security import client_credentials
from ottla.security.security_config import SecurityConfig

LOG = logging.getLogger(__name__)
MOST_CHARACTERS = 1024 * 1024
UNSAID_SECONDS = 300.0
"""How long a token is kept that does not say how long it is good for."""
Fetch = Callable[[float], "Token"]
"""Blocks; told the seconds since 1970. TokenError where there is none."""


class Token(Struct, frozen=True):
    """A token and how long it is good for."""

    secret: Password
    life: float
    """Seconds from when it was fetched."""


class TokenKeeper:
    """The token of one client."""

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
    def known(self) -> bool:
        """Whether there has been a token."""
        return self._token is not None

    def current(self, now: float) -> Token | None:
        """A token that is good for now; None while one is fetched, after which `wake` is called. Raises TokenError.

        Begins to fetch the next one in good time before the end of this one.
        """
        with self._lock:
            if self._error is not None:
                error, self._error = self._error, None
                if now >= self._expires:
                    raise error
                LOG.warning("no new token yet, the old one is good for %.0f s: %s", self._expires - now, error)
            if now >= self._refresh_at and not self._fetching:
                self._fetching = True
                threading.Thread(target=self._run, name="ottla-token-refresh", daemon=True).start()
            return self._token if now < self._expires else None

    def fresh(self, now: float) -> Token | None:
        """The same, but of a token that is to be replaced by now: the next one, for a session that outlives it."""
        self.current(now)
        with self._lock:  # it may have come between the two
            is_due = self._fetching and now >= self._refresh_at
            return None if is_due or now >= self._expires else self._token

    def _run(self) -> None:
        token, error = None, None
        try:
            token = self._fetched()
        except TokenError as told:
            error = told
        except (
            BaseException
        ) as told:  # the user's own function may raise anything, and its error is raised in the login
            error = TokenError(f"the token provider failed: {type(told).__name__}: {told}")
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

    def _fetched(self) -> Token:
        """A token, after some pauses if need be."""
        pause_ms, paused_ms = max(1, self._config.sasl_login_retry_backoff_ms), 0
        while True:
            try:
                return self._fetch(self._clock.wall_ms() / 1000)
            except PassingTokenError:
                if paused_ms + pause_ms > self._config.sasl_login_retry_backoff_max_ms:
                    raise
                threading.Event().wait(pause_ms / 1000)
                paused_ms, pause_ms = paused_ms + pause_ms, pause_ms * 2


def refresh_after(life: float, config: SecurityConfig, random: Random) -> float:
    """Seconds after which a token of that life is replaced, by Kafka's four settings."""
    factor = config.sasl_login_refresh_window_factor + config.sasl_login_refresh_window_jitter * random.random()
    wished = life * min(factor, 1.0)
    least, before = config.sasl_login_refresh_min_period_seconds, config.sasl_login_refresh_buffer_seconds
    if least + before > life:  # there is no room for either
        return wished
    return min(max(wished, least), life - before)


def fetch_for(config: SecurityConfig) -> Fetch:
    """How this client comes by tokens."""
    if config.sasl_oauth_token_provider is not None:
        return lambda now: of_provider(config.sasl_oauth_token_provider, now)
    if config.sasl_oauthbearer_token_file is not None:
        place = config.sasl_oauthbearer_token_file
        return lambda now: of_file(place, now)
    asked = client_credentials(config)
    assert asked is not None
    context = https_context(config.https_ca_location)
    connect, read = config.sasl_login_connect_timeout_ms / 1000, config.sasl_login_read_timeout_ms / 1000

    def fetch(now: float) -> Token:
        text, span = ask_for_token(asked, context, connect, read)
        return token_of(text, now, None if span is None else now + span)

    return fetch


def of_provider(provider: Any, now: float) -> Token:
    """What the user's function gives: a token, or a token and when it expires, in milliseconds since 1970."""
    given = provider() if callable(provider) else provider.token()
    if inspect.isawaitable(given):
        given = asyncio.run(awaited(given))
    text, expires_ms = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if not isinstance(text, str) or not text:
        raise TokenError(
            f"the token provider gave no token: it returned {type(given).__name__}, and must return text or (text, ms)"
        )
    if expires_ms is None:
        return token_of(text, now, None)
    if isinstance(expires_ms, bool) or not isinstance(expires_ms, int | float):
        raise TokenError("the token provider must give the end of the token as a number, in milliseconds since 1970")
    if expires_ms < 1e11:
        raise TokenError(
            f"the token provider says that its token ends at {expires_ms}: that must be milliseconds since 1970, and looks "
            f"like seconds; multiply it by 1000"
        )
    return token_of(text, now, expires_ms / 1000)


async def awaited(given: Any) -> Any:
    return await given


def of_file(place: str, now: float) -> Token:
    """What is in a file now."""
    path = Path(place)
    try:
        if path.stat().st_size > MOST_CHARACTERS:
            raise TokenError(f"sasl.oauthbearer.token.file = {place}: it is too large for a token")
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is not text"
        raise TokenError(f"sasl.oauthbearer.token.file = {place}: it cannot be read: {told}") from None
    if not text:
        raise TokenError(f"sasl.oauthbearer.token.file = {place}: it is empty")
    return token_of(text, now, None)


def token_of(text: str, now: float, expires: float | None) -> Token:
    """A token with its life: as was told, or as a JWT says itself."""
    end = jwt_end(text) if expires is None else expires
    life = UNSAID_SECONDS if end is None else end - now
    if life <= 0:
        raise TokenError(
            f"the token had expired {-life:.0f} s before it was got; look at the clock of this machine, or at its source"
        )
    return Token(Password(text), life)


def jwt_end(text: str) -> float | None:
    """The claim `exp` of a JWT, seconds since 1970; None where it is none. Nothing is believed of it: the broker checks."""
    parts = text.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        end = claims.get("exp") if isinstance(claims, dict) else None
        return float(end) if isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) else None
    except (ValueError, RecursionError, OverflowError):
        return None
