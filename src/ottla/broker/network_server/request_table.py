"""The requests that a listener serves: a broker's or a controller's.

A node has one `SocketServer` and one `RequestHandler` for all its listeners (decision 0133). The differences between
listeners are in a `ListenerContext`: the authentication of connections, and the table of requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ottla.broker.network_server.call import Call, Response, Resumes
from ottla.broker.network_server.connection import Connection

HangUp = Callable[[Connection, str], None]
"""Closes a connection, with the reason for the log."""
Work = Callable[[], Response]
"""Handles a request: returns the response, or an outcome without one. `DisconnectError` closes the connection."""


class RequestTable(Protocol):
    """The requests of one role of a node."""

    @property
    def has_quotas(self) -> bool:
        """True if usage is limited by quotas."""

    def count_use(self, call: Call, work: Work) -> Work:
        """Return the same work, charged to the quotas of the client if there are any."""

    @property
    def slow_request_ms(self) -> int:
        """The time from which the request log calls a request slow."""

    @property
    def has_due(self) -> bool:
        """True if responses to earlier requests are due. They are sent before the response to the present request."""

    def may_be_awaited(self, frame: memoryview) -> bool:
        """Return True if a request may satisfy another request that waits."""

    def answer_directly(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> bool:
        """Answer a usual request on a fast path; False if there is none for it. `arrived` is when its bytes were received."""

    def begin(self, resumes: Resumes, connection: Connection, frame: memoryview, now: float) -> tuple[Call, Work]:
        """Read a request. ProtocolError closes the connection."""

    def handle_disconnect(self, connection: Connection) -> None:
        """Handle the end of a connection."""


class ConnectionGate(Protocol):
    """The authentication of a listener's connections."""

    def accept_connection(self, connection: Connection, now: float, hang_up: HangUp) -> None: ...

    def is_authenticated(self, connection: Connection, frame: memoryview, now: float, hang_up: HangUp) -> bool: ...

    def after_step(self, connection: Connection) -> None: ...

    def remove_connection(self, connection: Connection) -> None: ...

    def log_bad_end(self, connection: Connection, sentence: str) -> None: ...


class ListenerContext(NamedTuple):
    """The treatment of a listener's connections."""

    listener: str
    gate: ConnectionGate
    table: RequestTable
    delay_ms: Callable[[str, float], float]
    """The delay before a new connection of an address is closed for exceeding its rate; 0 if it is accepted."""
