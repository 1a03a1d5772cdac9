"""One client's connection as the broker sees it: who it is, and what it asked that has not been answered.

    call ◄── behind, behind, …  ◄── pending frames
    the answer due next    Produces that are appended    not looked at

A Produce with acks=all is appended at once and waits for other brokers. What the same client sends meanwhile is appended, too, and goes to
them together; the answers leave in the order of the requests. Kafka's broker begins with the second when it has answered the first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ottla.model import Part

if TYPE_CHECKING:
    from ottla.broker.requests.call import Call
    from ottla.broker.requests.request_table import Door


ANONYMOUS = "User:ANONYMOUS"
"""Who a client is that has not said who it is, as Kafka calls it."""


PRODUCE_KEY = b"\0\0"
MOST_BEHIND = 127
"""Produces that wait behind another."""


class Connection:
    """A connection and the order of its requests: one is handled at a time, the others wait behind it, but for Produces."""

    __slots__ = (
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
        "unlogged",
    )

    door: Door
    """How the listener treats it; set when it is accepted."""

    def __init__(
        self, channel_id: int, peer: tuple[str, int], local: tuple[str, int], now: float, listener: str = "PLAINTEXT"
    ) -> None:
        self.channel_id = channel_id
        self.peer = peer
        self.local = local
        """The address by which the client reached us."""
        self.listener = listener
        """The name of the listener by which it came."""
        self.principal = ANONYMOUS
        """Who the client is, by Kafka's name of it: `User:alice`."""
        self.software = ("", "")
        """Name and version of the client's software, where it has said so."""
        self.by_token = False
        """Whether it has logged in by a delegation token."""
        self.login: Any = None
        """How far its login is; None where nothing is asked of it, or nothing any more."""
        self.pending: deque[tuple[memoryview, float]] = deque()
        """Frames that came behind the request under way, and when; while there are any, the channel is muted."""
        self.call: Call | None = None
        """The request under way that will be answered later, and is to be answered next."""
        self.behind: deque[Call] = deque()
        """Produces that were begun while it is under way, each to be answered after those before it."""
        self.unlogged: Callable[[float], None] | None = None
        """Writes the request log's line once the answer is gone."""
        self.since = self.last_active = now

    def __str__(self) -> str:
        return f"{self.peer[0]}:{self.peer[1]}"

    def lets_append(self, frame: memoryview) -> bool:
        """Whether a request may begin though one is under way: a Produce behind Produces that are appended."""
        last = self.behind[-1] if self.behind else self.call
        return (
            last is not None
            and last.lets_append
            and len(self.behind) < MOST_BEHIND
            and self.login is None
            and frame[:2] == PRODUCE_KEY
        )

    def begin(self, call: Call) -> None:
        """A call is under way, as the next to be answered or behind that."""
        if self.call is None:
            self.call = call
        elif self.call is not call and call not in self.behind:
            self.behind.append(call)

    def is_under_way(self, call: Call) -> bool:
        return self.call is call or call in self.behind

    def take_answers(self) -> Iterator[Sequence[Part]]:
        """Those that waited for the answer that has left; then the next call is due."""
        while self.behind:
            self.call = self.behind.popleft()
            if self.call.parts is None:
                return
            parts, self.call = self.call.parts, None
            yield parts

    def abandon(self) -> Iterator[Call]:
        """Calls that nobody waits for any more."""
        call, self.call = self.call, None
        if call is not None:
            yield call
        while self.behind:
            yield self.behind.popleft()
