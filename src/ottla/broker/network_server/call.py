"""One request, from its arrival to its response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from ottla.broker.network_server.request_times import RequestTimes
from ottla.model import Part
from ottla.protocol.headers import RequestHeader
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.network_server.connection import Connection


class Outcome(Enum):
    """The results of a handler that returns no response."""

    LATER = "later"
    """The handler answers the call later."""
    SILENT = "silent"
    """The client expects no response."""


class DisconnectError(Exception):
    """Raised to close the connection, when an expected error cannot be sent in a response."""


class Resumes(Protocol):
    """Continues calls that have waited for records, replication or other requests."""

    def resume(self, call: Call, work: Callable[[], Response]) -> None:
        """Do `work` for the call and send its response, unless the client has disconnected."""


class EncodedResponse:
    """A response without an error that is encoded already."""

    __slots__ = ("_throttle_at", "parts")

    def __init__(self, parts: Sequence[Part], throttle_at: int) -> None:
        """`throttle_at` is the position of the throttle time: in the first part, or if negative from the end of the last."""
        self.parts = parts
        self._throttle_at = throttle_at

    def set_throttle_time(self, milliseconds: int) -> None:
        """Write the time for which the client is throttled."""
        part = memoryview(self.parts[0 if self._throttle_at >= 0 else -1])  # type: ignore[arg-type]
        at = self._throttle_at % len(part)
        part[at : at + 4] = milliseconds.to_bytes(4, "big")


class Call:
    """A request without a response yet, and the means to send it."""

    __slots__ = (
        "_on_abandoned",
        "_server",
        "arrived",
        "connection",
        "entry",
        "header",
        "is_appended",
        "parts",
        "pause_ms",
        "received",
        "response_version",
        "size",
    )

    def __init__(
        self, server: Resumes, connection: Connection, header: RequestHeader, received: float, size: int = 0
    ) -> None:
        self._server = server
        self.connection = connection
        self.header = header
        self.received = received
        """The time of its arrival, by the monotonic clock."""
        self.arrived = received
        """The time at which its bytes were received; earlier than `received` if it waited behind other requests."""
        self.entry: RequestTimes | None = None
        """The times for the request log."""
        self.size = size
        """The size of the request in bytes."""
        self.pause_ms = 0
        """The time for which the client's connection is muted after the response, in milliseconds (throttling)."""
        self.response_version = header.api_version
        self.is_appended = False
        """True for a Produce that waits only for replication: the next Produce may be appended meanwhile."""
        self.parts: Sequence[Part] | None = None
        """Its response, while that waits behind the response to an earlier request."""
        self._on_abandoned: Callable[[], None] | None = None

    @property
    def has_fast_permission(self) -> bool:
        """True if the next Produce may start: this request has appended its records, or its response is ready."""
        return self.is_appended or self.parts is not None

    @property
    def version(self) -> int:
        """The version of the request."""
        return self.header.api_version

    def set_abandon_callback(self, callback: Callable[[], None] | None) -> None:
        """Call `callback` if the client disconnects while the call waits; it replaces an earlier one."""
        self._on_abandoned = callback

    def abandon(self) -> None:
        """Handle a client that has disconnected while the call waits."""
        if self._on_abandoned is not None:
            self._on_abandoned()

    def answer(self, response: Message) -> None:
        """Send the response to a call that has waited. Ignored if the client has disconnected."""
        self._server.resume(self, lambda: response)

    def resume(self, work: Callable[[], Response]) -> None:
        """Do more work for a call that has waited: respond, or wait again."""
        self._server.resume(self, work)


Response = Message | EncodedResponse | Outcome
