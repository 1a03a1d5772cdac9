"""The keys that tokens may be signed with, from a file or an HTTPS endpoint; read again when they change.

The endpoint is asked on a thread of its own. It is the one that is named, by `https` alone, and redirects are not followed.
"""

from __future__ import annotations

import http.client
import logging
import os
import ssl
import threading
import urllib.parse
from collections.abc import Callable
from typing import Any

from ottla.broker.authentication.tokens import read_keys
from ottla.broker.settings.listener_config import ListenerConfig
from ottla.clock import Clock
from ottla.errors import ConfigError

log = logging.getLogger(__name__)
MOST_BYTES = 1024 * 1024
SECONDS = 10.0
"""How long the endpoint may take."""
AGAIN_SECONDS = 10.0
"""How soon it is asked again at the earliest."""
FILE, URL = "sasl.oauthbearer.jwks.file", "sasl.oauthbearer.jwks.endpoint.url"
Then = Callable[[], None]


class TokenKeys:
    """The keys that one listener goes by."""

    def __init__(self, config: ListenerConfig, clock: Clock, call_soon: Callable[[Then], None]) -> None:
        """ConfigError where the file cannot be read; the endpoint is asked in the background."""
        self._file = config.sasl_oauthbearer_jwks_file
        self._url = config.sasl_oauthbearer_jwks_endpoint_url
        self._refresh = config.sasl_oauthbearer_jwks_endpoint_refresh_ms / 1000
        self._clock = clock
        self._call_soon = call_soon
        self._stamp: object = None
        self._asked_at = -AGAIN_SECONDS
        self._asking = False
        self._waiting: list[Then] = []
        self._context: ssl.SSLContext | None = None
        self._keys: Any = None
        if self._file is not None:
            self._stamp = stamp_of(self._file)
            self._keys = read_keys(f"{FILE} = {self._file}", contents(self._file))
        else:
            self._context = context_of(config.https_ca_location)
            self._ask()

    def current(self) -> Any:
        """The newest that could be read, None before there are any; has them fetched again in the background when it is time."""
        if self._file is not None:
            self._look_at_file(self._file)
        elif self._clock.monotonic() - self._asked_at > self._refresh:
            self._ask()
        return self._keys

    def renew(self, then: Then) -> bool:
        """Ask for a key that is not known; `then` is called when there is an answer. False: not now."""
        if self._url is None:
            return False
        if not self._asking and self._clock.monotonic() - self._asked_at < AGAIN_SECONDS:
            return False
        self._waiting.append(then)
        self._ask()
        return True

    def _look_at_file(self, file: str) -> None:
        stamp = stamp_of(file)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._keys = read_keys(f"{FILE} = {file}", contents(file))
            except ConfigError as error:
                log.warning("the keys of tokens stay as they were: %s", error)

    def _ask(self) -> None:
        if not self._asking:
            self._asking, self._asked_at = True, self._clock.monotonic()
            threading.Thread(target=self._fetch, name="ottla-jwks", daemon=True).start()

    def _fetch(self) -> None:
        assert self._url is not None
        assert self._context is not None
        try:
            keys = read_keys(f"{URL} = {self._url}", fetched(self._url, self._context))
        except (OSError, http.client.HTTPException, ValueError, ConfigError) as error:
            log.warning("the keys of tokens could not be fetched from %s: %s", self._url, error)
            keys = None
        self._call_soon(lambda: self._take(keys))

    def _take(self, keys: Any) -> None:
        self._asking = False
        if keys is not None:
            self._keys = keys
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()


def stamp_of(file: str) -> object:
    """What tells one state of a file from another."""
    try:
        told = os.stat(file)
    except OSError:
        return None
    return told.st_mtime_ns, told.st_size, told.st_ino


def contents(file: str) -> bytes:
    """What is in a file; ConfigError."""
    try:
        with open(file, "rb") as opened:
            return opened.read(MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{FILE} = {file}: {error.strerror or error}") from None


def context_of(ca_location: str | None) -> ssl.SSLContext:
    """Whom to believe to be the endpoint."""
    try:
        return ssl.create_default_context(cafile=ca_location)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"https.ca.location = {ca_location}: {error.strerror or 'no certificate in PEM'}") from None


def fetched(url: str, context: ssl.SSLContext) -> bytes:
    """What the endpoint says; OSError where that is nothing."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=SECONDS, context=context)
    try:
        path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        connection.request("GET", path, headers={"Accept": "application/json"})
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES + 1)
    finally:
        connection.close()
    if answer.status != 200 or len(body) > MOST_BYTES:
        raise OSError(f"HTTP status {answer.status}, {len(body)} bytes")
    return body
