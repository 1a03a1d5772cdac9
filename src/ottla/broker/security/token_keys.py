"""The keys that may sign tokens, from a file or an HTTPS endpoint; read again when they change.

The endpoint is read in a thread. Only the configured `https` URL is used, and redirects are not followed.
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

from ottla.broker.security.bearer_tokens import read_keys
from ottla.broker.settings.listener_config import ListenerConfig
from ottla.clock import Clock
from ottla.errors import ConfigError

log = logging.getLogger(__name__)
MOST_BYTES = 1024 * 1024
SECONDS = 10.0
"""The time limit for the endpoint."""
AGAIN_SECONDS = 10.0
"""The shortest interval between two reads."""
FILE, URL = "sasl.oauthbearer.jwks.file", "sasl.oauthbearer.jwks.endpoint.url"
Then = Callable[[], None]


class TokenKeys:
    """The keys of one listener."""

    def __init__(self, config: ListenerConfig, clock: Clock, call_soon: Callable[[Then], None]) -> None:
        """Raise ConfigError if the file cannot be read. The endpoint is read in the background."""
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
            self._stamp = read_stamp(self._file)
            self._keys = read_keys(f"{FILE} = {self._file}", read_contents(self._file))
        else:
            self._context = make_context(config.https_ca_location)
            self._start_fetch()

    def current_keys(self) -> Any:
        """Return the newest keys, None before they are read first. A refresh runs in the background when it is due."""
        if self._file is not None:
            self._reload_file(self._file)
        elif self._clock.monotonic() - self._asked_at > self._refresh:
            self._start_fetch()
        return self._keys

    def fetch_again(self, then: Then) -> bool:
        """Read the keys again for an unknown one; `then` is called with the result. False if it is too soon."""
        if self._url is None:
            return False
        if not self._asking and self._clock.monotonic() - self._asked_at < AGAIN_SECONDS:
            return False
        self._waiting.append(then)
        self._start_fetch()
        return True

    def _reload_file(self, file: str) -> None:
        stamp = read_stamp(file)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._keys = read_keys(f"{FILE} = {file}", read_contents(file))
            except ConfigError as error:
                log.warning("the token keys are unchanged: %s", error)

    def _start_fetch(self) -> None:
        if not self._asking:
            self._asking, self._asked_at = True, self._clock.monotonic()
            threading.Thread(target=self._fetch, name="ottla-jwks", daemon=True).start()

    def _fetch(self) -> None:
        assert self._url is not None
        assert self._context is not None
        try:
            keys = read_keys(f"{URL} = {self._url}", fetch(self._url, self._context))
        except (OSError, http.client.HTTPException, ValueError, ConfigError) as error:
            log.warning("cannot fetch the token keys from %s: %s", self._url, error)
            keys = None
        self._call_soon(lambda: self._set_keys(keys))

    def _set_keys(self, keys: Any) -> None:
        self._asking = False
        if keys is not None:
            self._keys = keys
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()


def read_stamp(file: str) -> object:
    """Return a value that changes with the file."""
    try:
        file_status = os.stat(file)
    except OSError:
        return None
    return file_status.st_mtime_ns, file_status.st_size, file_status.st_ino


def read_contents(file: str) -> bytes:
    """Return the contents of a file. Raise ConfigError."""
    try:
        with open(file, "rb") as opened:
            return opened.read(MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{FILE} = {file}: {error.strerror or error}") from None


def make_context(ca_location: str | None) -> ssl.SSLContext:
    """Return the TLS settings for the endpoint. Raise ConfigError."""
    try:
        return ssl.create_default_context(cafile=ca_location)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"https.ca.location = {ca_location}: {error.strerror or 'no certificate in PEM'}") from None


def fetch(url: str, context: ssl.SSLContext) -> bytes:
    """Return the response of the endpoint. Raise OSError."""
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
