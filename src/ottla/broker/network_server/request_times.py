"""The times of one request, for the request log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ottla.errors import name_of


class RequestTimes:
    """The times of a request so far, in seconds of the monotonic clock."""

    __slots__ = ("answered", "arrived", "errors", "local", "remote", "response_bytes", "since", "started")

    def __init__(self, arrived: float, started: float) -> None:
        self.arrived = arrived
        self.started = self.since = started
        self.answered = 0.0
        self.local = self.remote = 0.0
        self.response_bytes = 0
        self.errors: list[str] = []

    def resume(self, now: float) -> None:
        """Record that work continues after a wait."""
        self.remote += now - self.since
        self.since = now

    def pause(self, now: float) -> None:
        """Record that work ends, or pauses."""
        self.local += now - self.since
        self.since = now

    def record_response(self, response: Any, response_bytes: int, now: float) -> None:
        """Record that the response is ready to be sent."""
        self.pause(now)
        self.answered = now
        self.response_bytes = response_bytes
        self.errors = [name_of(code) for code in sorted(set(error_codes(response)))]


def error_codes(response: Any) -> Iterator[int]:
    """Yield every error code in a response, at any depth."""
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
