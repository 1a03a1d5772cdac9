"""One request on its way through the broker, from its arrival to its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from ottla.model import Part
from ottla.protocol.headers import RequestHeader
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.requests.connection import Connection
    from ottla.broker.requests.request_log import RequestTimes


class Outcome(Enum):
    """What a handler returns where it returns no response."""

    LATER = "later"
    """The handler keeps the call and answers it in its own time."""
    SILENT = "silent"
    """The client wants no answer."""


class HangUp(Exception):
    """Close the connection: the client expects no answer that could tell it what is wrong."""


class Resumes(Protocol):
    """Who goes on with a call that was kept."""

    def resume(self, call: Call, work: Callable[[], Message | Outcome]) -> None:
        """Do `work` for the call and answer it, unless its client has gone."""


class Call:
    """A request under way, and the way back to who asked."""

    __slots__ = (
        "_server",
        "arrived",
        "connection",
        "entry",
        "header",
        "is_appended",
        "on_abandoned",
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
        """When it arrived, by the monotonic clock."""
        self.arrived = received
        """When its bytes were there, which is earlier where it had to wait behind others."""
        self.entry: RequestTimes | None = None
        """What the request log knows of it."""
        self.size = size
        """Bytes of the request."""
        self.pause_ms = 0
        """For how long its client is not heard once it is answered."""
        self.response_version = header.api_version
        self.is_appended = False
        """Whether it is a Produce that waits only for what it appended to be committed: the next may be appended meanwhile."""
        self.parts: Sequence[Part] | None = None
        """Its answer, where that waits behind the answer to a request before it."""
        self.on_abandoned: Callable[[], None] | None = None
        """Called when the client has gone before the answer to a call that was kept."""

    @property
    def lets_append(self) -> bool:
        """Whether what it had to append is appended, so that a Produce behind it may begin."""
        return self.is_appended or self.parts is not None

    @property
    def version(self) -> int:
        """The version in which it was asked."""
        return self.header.api_version

    def answer(self, response: Message) -> None:
        """Send the response to a call that was kept for later; dropped where the client has gone."""
        self._server.resume(self, lambda: response)

    def resume(self, work: Callable[[], Message | Outcome]) -> None:
        """Do more work for a call that was kept: it answers, or keeps the call again."""
        self._server.resume(self, work)
