"""Fetches that wait for records: woken by appends to their partitions, or by the end of their patience.

Kafka calls this a purgatory. There every operation is watched under each of its keys, is tried again by every event of a key, and
is purged from the other keys' lists in the background. Here nothing is tried in vain and nothing is polled: a waiting fetch
knows how many bytes it still misses; an append subtracts what it brought from the fetches that wait for that partition, and
only a fetch that misses nothing any more is looked at again. It may find less than it hoped (an append that a reader of
committed records must not see yet counts too), and then waits anew for the rest.

A fetch is in `waiting` of each of its partitions, or of its session, in `_all`, has a timer, and is known to its call, should the client go;
`discard` takes it out of all of them, and is the only way out. Then nothing is left that leads from the call to the fetch and back, which only a
garbage collector would find: at a thousand fetches a second it would stop the broker every 40 ms. With a session (KIP-227) it waits there, in one place for any number of partitions: an
append goes by the partition's `watchers` to the sessions that read it, and leaves word which partition has news. Completing
happens once a turn of the loop, after all of the turn's requests: ten producers' batches make one answer, not ten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ottla.broker.fetching.wait_events import WaitBegun, WaitOver
from ottla.broker.timers import Timer, Timers
from ottla.protocol.apis import APIS
from ottla.trace import EventStream

if TYPE_CHECKING:
    from ottla.broker.fetching.fetch_session import FetchedPartition
    from ottla.broker.requests.call import Call

log = logging.getLogger(__name__)
FOR_ALL = 2**31
"""More bytes than any fetch may miss."""
MOST_PLACES = 8
"""That are named of one that waits."""


class Awaited(Protocol):
    """Where fetches wait: at partitions, or at a session, which hears of all of its partitions. Its text says which."""

    waiting: dict[WaitingFetch, None]


class FetchSource(Awaited, Protocol):
    """What brings records: a partition, which fetches may wait at themselves or watch by their session."""

    watchers: dict[FetchedPartition, None]


class WaitingFetch:
    """A fetch that could not be answered at once."""

    __slots__ = ("awaited", "call", "complete", "missing_bytes", "timer")

    def __init__(
        self, awaited: Sequence[Awaited], missing_bytes: int, complete: Callable[[], None], call: Call | None = None
    ) -> None:
        self.awaited = awaited
        self.missing_bytes = missing_bytes
        self.complete = complete
        """Called in the loop once it is time to look again; it may wait anew."""
        self.timer: Timer | None = None
        """Rings at the end of its patience."""
        self.call = call
        """Whose answer waits; None for those that a coordinator holds back."""

    @property
    def is_reached(self) -> bool:
        """Whether it misses nothing any more."""
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
        """Where it waits, for people; the first few."""
        return tuple(str(each) for each in self.awaited[:MOST_PLACES])


class Waiting:
    """All waiting fetches of a broker."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._due: list[WaitingFetch] = []
        self._all: dict[WaitingFetch, None] = {}
        self.closed = False
        """Whether nobody may wait any more, because the broker ends."""
        self.events = EventStream()
        """Who begins to wait and who is done with it."""

    def __iter__(self) -> Iterator[WaitingFetch]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def has_due(self) -> bool:
        """Whether some miss nothing any more, and are completed this turn."""
        return bool(self._due)

    def close(self) -> None:
        """Complete all that wait; from now on whoever looks again has to be content with what there is."""
        self.closed = True
        for fetch in list(self._all):
            self._finish(fetch)

    def add(self, fetch: WaitingFetch, deadline: float) -> None:
        """Let `fetch` wait for its partitions, until `deadline` at most."""
        fetch.timer = self._timers.at(deadline, lambda: self._finish(fetch))
        self._all[fetch] = None
        if fetch.call is not None:
            fetch.call.on_abandoned = partial(self.discard, fetch)
        for each in fetch.awaited:
            each.waiting[fetch] = None
        if self.events.active:
            self.events.tell(
                WaitBegun(fetch.api, fetch.client_id, fetch.correlation_id, fetch.places, fetch.missing_bytes)
            )

    def discard(self, fetch: WaitingFetch) -> None:
        """Let it wait no more; it is not completed."""
        if fetch.timer is not None:
            self._timers.cancel(fetch.timer)
            fetch.timer = None
            self._all.pop(fetch, None)
            if fetch.call is not None:
                fetch.call.on_abandoned = None
        for each in fetch.awaited:
            each.waiting.pop(fetch, None)

    def appended(self, partition: FetchSource, size: int) -> None:
        """Tell those who wait for `partition` that there are `size` bytes more."""
        for watcher in partition.watchers:
            session = watcher.session
            assert session is not None, "without a session nobody watches"
            session.note(watcher)
            self._bring(session, size)
        self._bring(partition, size)

    def changed(self, partition: FetchSource) -> None:
        """Tell sessions that read `partition` that it is not as it was; nobody is woken for that."""
        self.appended(partition, 0)

    def look_again(self, partitions: Iterable[FetchSource]) -> None:
        """Tell those who wait for partitions to look again: these are no more, or show more of what they have."""
        for partition in partitions:
            self.appended(partition, FOR_ALL)

    def look_soon(self, fetch: WaitingFetch) -> None:
        """Complete one that waits, once this turn's requests are done."""
        self._due.append(fetch)

    def _bring(self, awaited: Awaited, size: int) -> None:
        for fetch in awaited.waiting:
            if fetch.missing_bytes > 0:
                fetch.missing_bytes -= size
                if fetch.missing_bytes <= 0:
                    self._due.append(fetch)

    def run_due(self) -> None:
        """Complete the fetches that miss nothing any more; once a turn, so that one answer takes a turn's appends."""
        while self._due:
            due, self._due = self._due, []
            for fetch in due:
                if fetch.timer is not None:
                    try:
                        self._finish(fetch)
                    except Exception:  # of one request: the others of this turn are completed
                        log.exception("a waiting request could not be completed api=%s", fetch.api)

    def _finish(self, fetch: WaitingFetch) -> None:
        if self.events.active:
            self.events.tell(
                WaitOver(fetch.api, fetch.client_id, fetch.correlation_id, fetch.places, reached=fetch.is_reached)
            )
        self.discard(fetch)
        fetch.complete()
