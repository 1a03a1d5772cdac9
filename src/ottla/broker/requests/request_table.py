"""The requests that a listener serves: those of clients to a broker, or those of the quorum and of brokers to a controller.

A node has one `SocketServer` and one `RequestHandler` for all its listeners (decision 0133). What differs between
listeners is in a `Door`: how a connection logs in, and the table of requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.broker.requests.call import Call, Outcome, Resumes
from ottla.broker.requests.connection import Connection
from ottla.protocol.schema import Message

HangUp = Callable[[Connection, str], None]
"""Closes a connection, with the reason for the log."""
Work = Callable[[], Message | Outcome]
"""Handles a request: returns the response, or an outcome without one. `HangUp` closes the connection."""


class RequestTable(Protocol):
    """The requests of one role of a node."""

    @property
    def has_quotas(self) -> bool:
        """True if what clients use is limited."""

    def count_use(self, call: Call, work: Work) -> Work:
        """Return the same work, charged to the quotas of the client if there are any."""

    @property
    def slow_request_ms(self) -> int:
        """The time from which the request log calls a request slow."""

    @property
    def has_due(self) -> bool:
        """True if responses to earlier requests are due; they are sent before the response to the request in hand."""

    def may_be_awaited(self, frame: memoryview) -> bool:
        """True if a request may satisfy another request that waits."""

    def answer_directly(self, connection: Connection, frame: memoryview, now: float) -> bool:
        """Answer a usual request on a fast path; False if there is none for it."""

    def begin(self, resumes: Resumes, connection: Connection, frame: memoryview, now: float) -> tuple[Call, Work]:
        """Read a request. ProtocolError closes the connection."""

    def disconnected(self, connection: Connection) -> None:
        """Handle the end of a connection."""


class LoginGate(Protocol):
    """How connections of a listener log in."""

    def welcome(self, connection: Connection, now: float, hang_up: HangUp) -> None: ...

    def lets_in(self, connection: Connection, frame: memoryview, now: float, hang_up: HangUp) -> bool: ...

    def after_step(self, connection: Connection) -> None: ...

    def leave(self, connection: Connection) -> None: ...

    def tell_bad_end(self, connection: Connection, sentence: str) -> None: ...


class Door(NamedTuple):
    """How connections of one listener are treated."""

    listener: str
    gate: LoginGate
    table: RequestTable
    delay_ms: Callable[[str, float], float]
    """How long a new connection of an address is held before it is closed for connecting too often; 0 if it is not."""
