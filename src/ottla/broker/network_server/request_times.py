"""The times of one request, for the request log."""

from __future__ import annotations

from typing import Any

from ottla.broker.network_server.response_errors import error_codes
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
