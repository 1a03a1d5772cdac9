"""Fetches that wait for records: completed by appends to their partitions, or by their timeout.

Kafka's purgatory watches each operation under each of its keys, tries it again at every event of a key, and purges it
from the other keys' lists in the background. Here nothing is polled or tried in vain: a waiting fetch knows the number
of bytes that it lacks; an append subtracts its bytes from the fetches that wait for its partition, and only a fetch
that lacks none is tried again. It may find less than expected (an append that a reader of committed records must not
see yet counts as well), and then waits for the rest.

A fetch is in `waiting` of each of its partitions, or of its session, and in `_all`; it has a timer, and its call knows
it in case the client disconnects. Only `discard` removes it, and from all of them. Then no reference cycle between the
call and the fetch is left, which only a garbage collector would find: at a thousand fetches a second it would stop the
broker every 40 ms. With a session (KIP-227) it waits there, in one place for any number of partitions: an append
notifies the sessions among the partition's `watchers`, and marks the partition as changed. Fetches are completed once a
turn of the loop, after all of its requests: ten producers' batches make one response.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple, Protocol

from ottla.broker.event_loop.timers import Timers
from ottla.broker.replica_manager.fetch_session import FetchedPartition
from ottla.broker.replica_manager.waiting_fetch import Awaited, WaitingFetch
from ottla.trace import EventStream

log = logging.getLogger(__name__)
FOR_ALL = 2**31
"""More bytes than any fetch can lack."""


class WaitBegun(NamedTuple):
    """A request has started to wait."""

    api: str
    client_id: str
    correlation_id: int
    places: tuple[str, ...]
    """The partitions it waits for, or a fetch session."""
    missing_bytes: int

    def __str__(self) -> str:
        for_what = f"for {self.missing_bytes} bytes more" if self.missing_bytes > 0 else "to be committed"
        return f"{self.api} of {self.client_id or 'this broker'} waits {for_what} of {', '.join(self.places)}"


class WaitOver(NamedTuple):
    """A wait has ended. The fetch may be answered, or wait again."""

    api: str
    client_id: str
    correlation_id: int
    places: tuple[str, ...]
    reached: bool
    """True if what it waited for has arrived, false after a timeout."""

    def __str__(self) -> str:
        why = "what it waited for has arrived" if self.reached else "its time is over"
        return f"{self.api} of {self.client_id or 'this broker'} waits no more for {', '.join(self.places)}: {why}"


class FetchSource(Awaited, Protocol):
    """A source of records: a partition where fetches wait, or that sessions watch."""

    watchers: dict[FetchedPartition, None]


class FetchPurgatory:
    """All waiting fetches of a broker."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._due: list[WaitingFetch] = []
        self._all: dict[WaitingFetch, None] = {}
        self.closed = False
        """True once the broker stops, and nothing may wait."""
        self.events = EventStream()
        """The events of fetches that start and stop waiting."""

    def __iter__(self) -> Iterator[WaitingFetch]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def has_due(self) -> bool:
        """True if fetches are to be completed in this turn."""
        return bool(self._due)

    def close(self) -> None:
        """Complete all fetches. Later ones do not wait."""
        self.closed = True
        for fetch in list(self._all):
            self._finish(fetch)

    def add(self, fetch: WaitingFetch, deadline: float) -> None:
        """Have `fetch` wait for its partitions until `deadline`, a reading of the monotonic clock."""
        fetch.timer = self._timers.schedule(deadline, lambda: self._finish(fetch))
        self._all[fetch] = None
        if fetch.call is not None:
            fetch.call.set_abandon_callback(partial(self.discard, fetch))
        for each in fetch.awaited:
            each.waiting[fetch] = None
        if self.events.active:
            self.events.publish(
                WaitBegun(fetch.api, fetch.client_id, fetch.correlation_id, fetch.places, fetch.missing_bytes)
            )

    def discard(self, fetch: WaitingFetch) -> None:
        """Remove a fetch without completing it."""
        if fetch.timer is not None:
            self._timers.cancel(fetch.timer)
            fetch.timer = None
            self._all.pop(fetch, None)
            if fetch.call is not None:
                fetch.call.set_abandon_callback(None)
        for each in fetch.awaited:
            each.waiting.pop(fetch, None)

    def handle_append(self, partition: FetchSource, size: int) -> None:
        """Subtract `size` appended bytes from the fetches that wait for `partition`."""
        for watcher in partition.watchers:
            session = watcher.session
            assert session is not None, "only sessions watch partitions"
            session.mark_changed(watcher)
            self._add_bytes(session, size)
        self._add_bytes(partition, size)

    def handle_change(self, partition: FetchSource) -> None:
        """Mark `partition` as changed in the sessions that read it. No fetch is completed by this."""
        self.handle_append(partition, 0)

    def recheck(self, partitions: Iterable[FetchSource]) -> None:
        """Complete the fetches that wait for partitions: the partitions were removed, or more of their records became visible."""
        for partition in partitions:
            self.handle_append(partition, FOR_ALL)

    def recheck_soon(self, fetch: WaitingFetch) -> None:
        """Complete a waiting fetch after the requests of this turn."""
        self._due.append(fetch)

    def _add_bytes(self, awaited: Awaited, size: int) -> None:
        for fetch in awaited.waiting:
            if fetch.missing_bytes > 0:
                fetch.missing_bytes -= size
                if fetch.missing_bytes <= 0:
                    self._due.append(fetch)

    def run_due(self) -> None:
        """Complete the fetches that have enough bytes; once a turn, so that one response has all appends of a turn."""
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
            self.events.publish(
                WaitOver(fetch.api, fetch.client_id, fetch.correlation_id, fetch.places, reached=fetch.is_reached)
            )
        self.discard(fetch)
        fetch.complete()
