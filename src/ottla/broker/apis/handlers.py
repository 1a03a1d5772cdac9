"""The table of APIs: one module for each, loaded at its first request.

ApiVersions is derived from this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.protocol.apis import APIS, SERVED, Api, snake_case
from ottla.protocol.messages.api_versions import ApiVersion
from ottla.protocol.schema import Message, Range

Handle = Callable[[BrokerNode, Call, Any], Message | Outcome]
"""Returns the response to a request, or `Outcome.LATER`."""


class Line(NamedTuple):
    """An API that this broker serves."""

    api: Api
    handle: Handle
    versions: Range
    """The versions that the broker accepts."""


class Handlers(Mapping[int, Line]):
    """Maps an API key to its handler."""

    def __init__(self) -> None:
        self._keys = list(SERVED)
        self._loaded: dict[int, Line] = {}

    def __getitem__(self, key: int) -> Line:
        found = self._loaded.get(key)
        if found is None:
            if key not in self._keys:
                raise KeyError(key)
            found = self._loaded[key] = load_handler(key)
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def load_handler(key: int) -> Line:
    """Return a row of the table, with the versions that can be read and are advertised."""
    api, advertised = APIS[key], SERVED[key].advertised
    is_forwarded = api.name in FORWARDED
    handle = forward_request if is_forwarded else import_module(f"{__package__}.{snake_case(api.name)}").handle
    last = min(api.versions.last, advertised.last)
    return Line(api, handle, Range(max(api.versions.first, advertised.first), last))


def forward_request(node: BrokerNode, call: Call, request: Any) -> Message | Outcome:
    """Handle an API that is forwarded to the active controller. It has no handler on this node."""
    raise AssertionError(f"{APIS[request.KEY].name} is forwarded to the active controller")


HANDLERS = Handlers()


FORWARDED = frozenset(each.name for each in SERVED.values() if each.is_forwarded)
"""The APIs that a broker forwards to the active controller: `Forwarding`."""

OF_TELEMETRY = frozenset(("GetTelemetrySubscriptions", "PushTelemetry"))
"""Clients call these as soon as they are advertised; librdkafka logs a line about it for each client."""


def list_versions(*, shows_metrics: bool = False) -> list[ApiVersion]:
    """Return the table for ApiVersions.

    Client telemetry is advertised only if the metrics page is enabled, as in Kafka.
    """
    hidden = frozenset[str]() if shows_metrics else OF_TELEMETRY
    names = {key: SERVED[key].name for key in sorted(HANDLERS)}
    keys = [key for key, name in names.items() if name not in hidden]
    return [ApiVersion(key, *SERVED[key].advertised) for key in keys]


def handle_authorized(node: BrokerNode, line: Line, call: Call, request: Any) -> Message | Outcome:
    """Return the response of a handler, or the error of a client that is not authorized."""
    from ottla.broker.apis import permissions  # loads many messages; only with an authorizer

    assert node.access is not None
    refusal = permissions.find_refusal(node.access, call, request)
    return line.handle(node, call, request) if refusal is None else refusal
