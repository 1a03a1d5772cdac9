"""A fetch that waits for records, or another request that waits for replication, and the places where it waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ottla.broker.event_loop.timers import Timer
from ottla.protocol.apis import APIS

if TYPE_CHECKING:
    from ottla.broker.network_server.call import Call

MOST_PLACES = 8
"""That are named of one that waits."""


class Awaited(Protocol):
    """A place where fetches wait: a partition, or a session, which is notified of all its partitions.

    Its text names it.
    """

    waiting: dict[WaitingFetch, None]


class WaitingFetch:
    """A fetch that could not be answered at once."""

    __slots__ = ("awaited", "call", "complete", "missing_bytes", "timer")

    def __init__(
        self, awaited: Sequence[Awaited], missing_bytes: int, complete: Callable[[], None], call: Call | None = None
    ) -> None:
        self.awaited = awaited
        self.missing_bytes = missing_bytes
        self.complete = complete
        """Called in the loop when the fetch may be complete; it may wait again."""
        self.timer: Timer | None = None
        """Rings at the end of its patience."""
        self.call = call
        """The call to answer; None for requests that a coordinator delays."""

    @property
    def is_reached(self) -> bool:
        """True if it lacks no more bytes."""
        return self.missing_bytes <= 0

    @property
    def api(self) -> str:
        return "an answer of a coordinator" if self.call is None else APIS[self.call.header.api_key].name

    @property
    def client_id(self) -> str:
        return "" if self.call is None else self.call.header.client_id or ""

    @property
    def correlation_id(self) -> int:
        """By which its client knows it; -1 for what a coordinator holds back."""
        return -1 if self.call is None else self.call.header.correlation_id

    @property
    def places(self) -> tuple[str, ...]:
        """Return the names of the first few places where it waits."""
        return tuple(str(each) for each in self.awaited[:MOST_PLACES])
