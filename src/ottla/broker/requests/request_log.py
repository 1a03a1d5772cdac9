"""The request log: one line of JSON for each request that was answered, for those who want it.

    {"api": "Fetch", "version": 17, "client_id": "c-1", "connection": "127.0.0.1:4711", "listener": "PLAINTEXT",
     "request_bytes": 91, "response_bytes": 4180, "queue_ms": 0.0, "local_ms": 0.21, "remote_ms": 500.1,
     "response_queue_ms": 0.0, "send_ms": 0.04, "total_ms": 500.35, "errors": [], "slow": false}

Written to the logger `ottla.request` at level DEBUG, slow requests at WARNING. `queue` is behind other requests of the
connection, `local` the work, `remote` the wait for records or for the disk, `response_queue` and `send` are the way out.
What a request waited by its own wish (remote) does not make it slow. Nothing is measured while nobody reads the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from ottla.broker.requests.call import Call
from ottla.errors import ConfigError, name_of

log = logging.getLogger("ottla.request")


def wanted() -> bool:
    """Whether anybody reads these lines."""
    return log.isEnabledFor(logging.DEBUG)


def begin(path: str) -> Callable[[], None]:
    """Append the lines to a file, `-` is standard error, until what is returned is called; ConfigError if it cannot."""
    if not path:
        return lambda: None
    try:
        handler = logging.StreamHandler() if path == "-" else logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"request.log = {path!r}: {error.strerror or error}") from None
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    before = log.propagate, log.level
    log.propagate = False
    log.setLevel(logging.DEBUG)

    def end() -> None:
        log.removeHandler(handler)
        handler.close()
        log.propagate = before[0]
        log.setLevel(before[1])

    return end


class RequestTimes:
    """What is known of a request so far. Moments are readings of the monotonic clock, in seconds."""

    __slots__ = ("answered", "arrived", "errors", "local", "remote", "response_bytes", "since", "started")

    def __init__(self, arrived: float, started: float) -> None:
        self.arrived = arrived
        self.started = self.since = started
        self.answered = 0.0
        self.local = self.remote = 0.0
        self.response_bytes = 0
        self.errors: list[str] = []

    def go_on(self, now: float) -> None:
        """Work begins again after a wait."""
        self.remote += now - self.since
        self.since = now

    def pause(self, now: float) -> None:
        """Work ends, for now or for good."""
        self.local += now - self.since
        self.since = now

    def answer(self, response: Any, response_bytes: int, now: float) -> None:
        """The answer is ready to be sent."""
        self.pause(now)
        self.answered = now
        self.response_bytes = response_bytes
        self.errors = [name_of(code) for code in sorted(set(error_codes(response)))]


def error_codes(response: Any) -> Iterator[int]:
    """Every error in an answer, wherever it stands."""
    if isinstance(response, list | tuple):
        for item in response:
            yield from error_codes(item)
    elif isinstance(response, Struct):
        for name in response.__struct_fields__:
            value = getattr(response, name)
            if name == "error_code":
                if value:
                    yield value
            elif isinstance(value, list | tuple | Struct):
                yield from error_codes(value)


def write(call: Call, api: str, entry: RequestTimes, sending: float, now: float, slow_ms: int) -> None:
    """Note a request whose answer has been sent, from `sending` until `now`."""
    import json  # for who has requests logged

    queue, total = entry.started - entry.arrived, now - entry.arrived
    slow = 0 <= slow_ms <= (total - entry.remote) * 1000
    line = {
        "api": api,
        "version": call.header.api_version,
        "client_id": call.header.client_id,
        "connection": str(call.connection),
        "listener": call.connection.listener,
        "request_bytes": call.size,
        "response_bytes": entry.response_bytes,
        "queue_ms": milliseconds(queue),
        "local_ms": milliseconds(entry.local),
        "remote_ms": milliseconds(entry.remote),
        "response_queue_ms": milliseconds(sending - entry.answered),
        "send_ms": milliseconds(now - sending),
        "total_ms": milliseconds(total),
        "errors": entry.errors,
        "slow": slow,
    }
    log.log(logging.WARNING if slow else logging.DEBUG, "%s", json.dumps(line))


def milliseconds(seconds: float) -> float:
    """In milliseconds, to the microsecond."""
    return round(seconds * 1000, 3)
