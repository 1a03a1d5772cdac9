"""Requests to a registry as generators: they yield a `Request` or a `Pause`, and receive the `Reply`. Pure.

The blocking and the asyncio client run the same generators (`clients.py`). Clock and randomness are arguments.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping
from typing import Any, NoReturn, TypeAlias, TypeVar
from urllib.parse import quote, urlencode

from msgspec import Struct

from ottla._version import __version__
from ottla.schemas.config import RegistryConfig
from ottla.schemas.errors import SchemaRegistryError

T = TypeVar("T")
RETRIABLE = frozenset({408, 429, 500, 502, 503, 504})
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
ACCEPT = f"{CONTENT_TYPE}, application/vnd.schemaregistry+json, application/json"
TOKEN_MARGIN = 0.8
"""The part of a token's lifetime after which the next one is requested."""


class Request(Struct, frozen=True):
    """An HTTP request to send."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None


class Pause(Struct, frozen=True):
    """A time to wait."""

    seconds: float


class Reply(Struct, frozen=True):
    """The response to a request."""

    status: int
    content: bytes


class TransportError(Exception):
    """No response was received; thrown into the generator by the client."""


Exchange: TypeAlias = Generator[Request | Pause, Reply | None, T]


class Session:
    """Sends requests with credentials, to several addresses, with retries."""

    def __init__(self, config: RegistryConfig, monotonic: Callable[[], float], random: Callable[[], float]) -> None:
        self._config = config
        self._monotonic = monotonic
        self._random = random
        self._first = 0
        """The index of the address that answered last."""
        self._token = ""
        self._token_expires = float("-inf")

    def send(self, method: str, path: str, query: Mapping[str, Any] | None = None, body: Any = None) -> Exchange[Any]:
        """Return the parsed response. Raises SchemaRegistryError."""
        urls, rounds = self._config.urls, self._config.max_retries + 1
        text = urlencode({name: spell(value) for name, value in (query or {}).items() if value is not None})
        target = f"/{path}?{text}" if text else f"/{path}"
        content = None if body is None else json.dumps(body).encode()
        problem: Exception | Reply = TransportError("no address")
        for attempt in range(rounds):
            headers = yield from self._headers(content)
            for index in range(len(urls)):
                at = (self._first + index) % len(urls)
                try:
                    reply = yield Request(method, urls[at] + target, headers, content)
                except TransportError as error:
                    problem = error
                    continue
                assert reply is not None
                if reply.status < 300:
                    self._first = at
                    return parse_body(reply)
                if reply.status not in RETRIABLE:
                    raise_failed(reply)
                problem = reply
            if attempt + 1 < rounds:
                yield Pause(self._pause(attempt))
        if isinstance(problem, Reply):
            raise_failed(problem)
        where = ", ".join(urls)
        raise SchemaRegistryError(
            -1, -1, f"no schema registry answers at {where} ({problem}); check url, and that the registry runs"
        )

    def _pause(self, attempt: int) -> float:
        """Return the seconds before the next attempt: doubled each time, with up to 20 % less at random."""
        config = self._config
        longest = min(config.retries_wait_ms * 2**attempt, config.retries_max_wait_ms)
        return float(longest * (1 - 0.2 * self._random()) / 1000)

    def _headers(self, content: bytes | None) -> Exchange[dict[str, str]]:
        config = self._config
        headers = {"Accept": ACCEPT, "User-Agent": f"ottla/{__version__}", **config.headers}
        if content is not None:
            headers["Content-Type"] = CONTENT_TYPE
            headers["Confluent-Accept-Unknown-Properties"] = "true"
        if config.user is not None:
            headers["Authorization"] = "Basic " + b64encode(":".join(config.user).encode()).decode()
        elif config.token is not None:
            headers["Authorization"] = f"Bearer {config.token}"
        elif config.token_function is not None:
            fields = config.token_function()
            headers["Authorization"] = f"Bearer {fields.get('bearer.auth.token')}"
            if fields.get("bearer.auth.logical.cluster"):
                headers["target-sr-cluster"] = fields["bearer.auth.logical.cluster"]
            if fields.get("bearer.auth.identity.pool.id"):
                headers["Confluent-Identity-Pool-Id"] = fields["bearer.auth.identity.pool.id"]
        elif config.oauth is not None:
            headers["Authorization"] = "Bearer " + (yield from self._fetch_token())
        return headers

    def _fetch_token(self) -> Exchange[str]:
        """Return the token of client credentials, from the OAuth server if the last one is too old."""
        oauth = self._config.oauth
        assert oauth is not None
        if self._monotonic() < self._token_expires:
            return self._token
        form = {"grant_type": "client_credentials", "client_id": oauth.client_id, "client_secret": oauth.client_secret}
        if oauth.scope:
            form["scope"] = oauth.scope
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        try:
            reply = yield Request("POST", oauth.endpoint, headers, urlencode(form).encode())
        except TransportError as error:
            raise SchemaRegistryError(
                -1, -1, f"no answer from {oauth.endpoint} ({error}); check bearer.auth.issuer.endpoint.url"
            ) from None
        assert reply is not None
        token, lifetime = read_token(reply, oauth.endpoint)
        self._token, self._token_expires = token, self._monotonic() + lifetime * TOKEN_MARGIN
        return token


def read_token(reply: Reply, endpoint: str) -> tuple[str, float]:
    """Return the token of an OAuth server's response, and its lifetime in seconds. An error never contains the token."""
    try:
        answer = json.loads(reply.content)
        token = str(answer["access_token"])
    except (ValueError, KeyError, TypeError):
        text = reply.content[:200].decode("utf-8", "replace")
        raise SchemaRegistryError(
            reply.status, -1, f"{endpoint} returned no token: {text!r}; check bearer.auth.client.id and its secret"
        ) from None
    lifetime = answer.get("expires_in") or 0
    try:
        return token, float(lifetime)
    except (ValueError, TypeError):
        raise SchemaRegistryError(
            reply.status, -1, f"{endpoint} returned expires_in = {lifetime!r:.80}: expected a number of seconds"
        ) from None


def spell(value: Any) -> str:
    """Return a query parameter as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def quoted(part: object) -> str:
    """Return a part of a path."""
    return quote(str(part), safe="")


def parse_body(reply: Reply) -> Any:
    """Return the JSON of a successful response; None if there is none."""
    if not reply.content or reply.status == 204:
        return None
    try:
        return json.loads(reply.content)
    except ValueError:
        text = reply.content[:200].decode("utf-8", "replace")
        raise SchemaRegistryError(
            reply.status, -1, f"the response is not JSON: {text!r}; check that url is the address of a schema registry"
        ) from None


def raise_failed(reply: Reply) -> NoReturn:
    """Raise the error of a response."""
    text = reply.content[:500].decode("utf-8", "replace")
    try:
        answer = json.loads(reply.content)
        code, message = int(answer["error_code"]), str(answer["message"])
    except (ValueError, KeyError, TypeError):
        code, message = -1, f"the schema registry refused the request: {text!r}"
    if reply.status == 401:
        message += "; check basic.auth.user.info or bearer.auth.token"
    raise SchemaRegistryError(reply.status, code, message)
