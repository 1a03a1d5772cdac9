"""The request log: one line of JSON for each answered request.

    {"api": "Fetch", "version": 17, "client_id": "c-1", "connection": "127.0.0.1:4711", "listener": "PLAINTEXT",
     "request_bytes": 91, "response_bytes": 4180, "queue_ms": 0.0, "local_ms": 0.21, "remote_ms": 500.1,
     "response_queue_ms": 0.0, "send_ms": 0.04, "total_ms": 500.35, "errors": [], "slow": false}

Written to the logger `ottla.request` at level DEBUG, slow requests at WARNING. `queue` is the wait behind other
requests of the connection, `local` the work, `remote` the wait for records, replication or the disk; `response_queue`
and `send` are the time of sending. `remote` does not make a request slow. Nothing is measured unless the level of the
logger is DEBUG.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.broker.network_server.call import Call
from ottla.broker.network_server.request_times import RequestTimes
from ottla.clock import Clock
from ottla.errors import ConfigError
from ottla.network.selector import Selector

log = logging.getLogger("ottla.request")


def is_enabled() -> bool:
    """Return True if the request log is enabled."""
    return log.isEnabledFor(logging.DEBUG)


def open_log(path: str) -> Callable[[], None]:
    """Append the lines to a file (`-` is standard error) until the returned function is called.

    A file that was renamed, as by logrotate, is created again with the next line. ConfigError if it cannot be opened.
    """
    if not path:
        return lambda: None
    from logging.handlers import WatchedFileHandler  # loaded only if requests are logged

    try:
        handler = logging.StreamHandler() if path == "-" else WatchedFileHandler(path, encoding="utf-8")
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


def write_line(call: Call, api: str, entry: RequestTimes, sending: float, now: float, slow_ms: int) -> None:
    """Log a request with a response that was sent between `sending` and `now`."""
    import json  # loaded only if requests are logged

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
        "queue_ms": to_milliseconds(queue),
        "local_ms": to_milliseconds(entry.local),
        "remote_ms": to_milliseconds(entry.remote),
        "response_queue_ms": to_milliseconds(sending - entry.answered),
        "send_ms": to_milliseconds(now - sending),
        "total_ms": to_milliseconds(total),
        "errors": entry.errors,
        "slow": slow,
    }
    log.log(logging.WARNING if slow else logging.DEBUG, "%s", json.dumps(line))


def to_milliseconds(seconds: float) -> float:
    """Return a time in milliseconds, with three decimal places."""
    return round(seconds * 1000, 3)


class RequestTimer:
    """The times of requests, measured only if the request log is enabled."""

    def __init__(self, selector: Selector, clock: Clock) -> None:
        self._selector = selector
        self._clock = clock

    def begin(self, call: Call) -> RequestTimes:
        """Record that work for a call starts or continues."""
        now = self._clock.monotonic()
        if call.entry is None:
            call.entry = RequestTimes(call.arrived, now)
        else:
            call.entry.resume(now)
        return call.entry

    def note(self, call: Call, name: str, entry: RequestTimes, slow_ms: int) -> None:
        """Write a line at once, or when the response has been sent."""
        sending = entry.answered

        def write(now: float) -> None:
            write_line(call, name, entry, sending, now, slow_ms)

        if self._selector.queued_bytes(call.connection.channel_id):
            call.connection.log_when_sent(write)
        else:
            write(self._clock.monotonic())
