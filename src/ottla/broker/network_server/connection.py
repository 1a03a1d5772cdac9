"""A client's connection: its identity, and its requests without a response.

    call ◄── behind, behind, …  ◄── pending frames
    the next response      Produces that are appended    not read yet

A Produce with acks=all is appended at once and waits for replication. Further Produces of the same connection are
appended as well, and replicated together; the responses are sent in the order of the requests. Kafka's broker starts
the second after it has answered the first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ottla.model import Part

if TYPE_CHECKING:
    from ottla.broker.network_server.call import Call
    from ottla.broker.network_server.request_table import ListenerContext


ANONYMOUS = "User:ANONYMOUS"
"""The principal of a connection that has not authenticated, as in Kafka."""


PRODUCE_KEY = b"\0\0"
MOST_BEHIND = 127
"""The maximum number of Produces that wait behind another."""


class Connection:
    """A connection and the order of its requests.

    One request is handled at a time, and the others wait behind it, except for Produces.
    """

    __slots__ = (
        "_unlogged",
        "behind",
        "by_token",
        "call",
        "channel_id",
        "door",
        "last_active",
        "listener",
        "local",
        "login",
        "peer",
        "pending",
        "principal",
        "since",
        "software",
    )

    door: ListenerContext
    """The treatment of connections of its listener; set when it is accepted."""

    def __init__(
        self, channel_id: int, peer: tuple[str, int], local: tuple[str, int], now: float, listener: str = "PLAINTEXT"
    ) -> None:
        self.channel_id = channel_id
        self.peer = peer
        self.local = local
        """The local address of the connection."""
        self.listener = listener
        """The name of the listener that accepted it."""
        self.principal = ANONYMOUS
        """The principal in Kafka's form: `User:alice`."""
        self.software = ("", "")
        """Name and version of the client's software, if it has sent them."""
        self.by_token = False
        """True if it has authenticated by a delegation token."""
        self.login: Any = None
        """The state of its login; None if none is required, or it is complete."""
        self.pending: deque[tuple[memoryview, float]] = deque()
        """Frames behind the request under way, with their times of arrival. The channel is muted while there are any."""
        self.call: Call | None = None
        """The request under way, which is answered next."""
        self.behind: deque[Call] = deque()
        """Produces that started while `call` is under way; each is answered after those before it."""
        self._unlogged: Callable[[float], None] | None = None
        self.since = self.last_active = now

    def __str__(self) -> str:
        return f"{self.peer[0]}:{self.peer[1]}"

    def has_fast_permission(self, frame: memoryview) -> bool:
        """Return True if a request may start while another is under way: a Produce behind Produces that are appended."""
        last = self.behind[-1] if self.behind else self.call
        return (
            last is not None
            and last.has_fast_permission
            and len(self.behind) < MOST_BEHIND
            and self.login is None
            and frame[:2] == PRODUCE_KEY
        )

    @property
    def is_unlogged(self) -> bool:
        """True if a line of the request log waits until the response is sent."""
        return self._unlogged is not None

    def log_when_sent(self, write: Callable[[float], None]) -> None:
        """Have `write` called with the time when the response is sent, to write its line of the request log."""
        self._unlogged = write

    def write_log_line(self, now: float) -> None:
        """Write the line that waits."""
        write, self._unlogged = self._unlogged, None
        if write is not None:
            write(now)

    def begin(self, call: Call) -> None:
        """Record a call without a response yet: the next one to be answered, or one behind it."""
        if self.call is None:
            self.call = call
        elif self.call is not call and call not in self.behind:
            self.behind.append(call)

    def is_in_flight(self, call: Call) -> bool:
        return self.call is call or call in self.behind

    def pop_responses(self) -> Iterator[Sequence[Part]]:
        """Yield the responses that waited behind the one just sent. The next unanswered call becomes `call`."""
        while self.behind:
            self.call = self.behind.popleft()
            if self.call.parts is None:
                return
            parts, self.call = self.call.parts, None
            yield parts

    def abandon(self) -> Iterator[Call]:
        """Yield the calls without a response, and remove them."""
        call, self.call = self.call, None
        if call is not None:
            yield call
        while self.behind:
            yield self.behind.popleft()
