"""One client's connection as the broker sees it: who it is, and what it asked that has not been answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.broker.requests.call import Call


ANONYMOUS = "User:ANONYMOUS"
"""Who a client is that has not said who it is, as Kafka calls it."""


class Connection:
    """A connection and the order of its requests: one is handled at a time, the others wait behind it."""

    __slots__ = (
        "by_token",
        "call",
        "channel_id",
        "last_active",
        "listener",
        "local",
        "login",
        "peer",
        "pending",
        "principal",
        "unlogged",
    )

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
        self.by_token = False
        """Whether it has logged in by a delegation token."""
        self.login: Any = None
        """How far its login is; None where nothing is asked of it, or nothing any more."""
        self.pending: deque[tuple[memoryview, float]] = deque()
        """Frames that came behind the request under way, and when; while there are any, the channel is muted."""
        self.call: Call | None = None
        """The request under way that will be answered later."""
        self.unlogged: Callable[[float], None] | None = None
        """Writes the request log's line once the answer is gone."""
        self.last_active = now

    def __str__(self) -> str:
        return f"{self.peer[0]}:{self.peer[1]}"
