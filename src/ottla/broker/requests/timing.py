"""How long requests took, for the request log: where they are timed, and when a line is due."""

from __future__ import annotations

from ottla.broker.requests import request_log
from ottla.broker.requests.call import Call
from ottla.clock import Clock
from ottla.network.selector import Selector


class Timing:
    """Asked only while somebody reads the log."""

    def __init__(self, selector: Selector, clock: Clock) -> None:
        self._selector = selector
        self._clock = clock

    def begin(self, call: Call) -> request_log.RequestTimes:
        """Work for a call begins, or goes on."""
        now = self._clock.monotonic()
        if call.entry is None:
            call.entry = request_log.RequestTimes(call.arrived, now)
        else:
            call.entry.go_on(now)
        return call.entry

    def note(self, call: Call, name: str, entry: request_log.RequestTimes, slow_ms: int) -> None:
        """Write a line, at once or when the answer is gone."""
        sending = entry.answered

        def write(now: float) -> None:
            request_log.write(call, name, entry, sending, now, slow_ms)

        if self._selector.queued_bytes(call.connection.channel_id):
            call.connection.unlogged = write
        else:
            write(self._clock.monotonic())
