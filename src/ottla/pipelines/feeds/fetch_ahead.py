"""Fetches the next rows of a feed while Spark processes the previous ones.

A feed is only used in one thread, because drivers of databases require that. Rows fetched ahead count only when `fetch_next`
returns them; until then they are files of a later batch, which a restarted query ignores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

Found = TypeVar("Found")
Place = TypeVar("Place")
PATIENCE_SECONDS = 10.0
"""The time to wait for a running fetch at the end."""


class Fetch(NamedTuple, Generic[Place, Found]):
    """A fetch that was started."""

    place: Place
    result: Future[Found]


class FetchAhead(Generic[Place, Found]):
    """The thread of a feed, with fetches that run ahead, each from the end of the one before.

    `fetch` returns the rows after a place. `following` returns the place for the next fetch, or None if there is
    nothing to fetch ahead. `room` is the greatest number of waiting fetches.
    """

    def __init__(
        self, fetch: Callable[[Place], Found], following: Callable[[Found], Place | None], room: int = 1
    ) -> None:
        self._fetch, self._following, self._room = fetch, following, room
        self._thread: ThreadPoolExecutor | None = None
        self._started: deque[Fetch[Place, Found]] = deque()
        self._lock = Lock()

    def call_in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of the function, called in the feed's thread."""
        return self._submit(function, *arguments).result()

    def fetch_next(self, place: Place) -> list[Found]:
        """Return the completed fetches from this place on, at least one. An error of the first is raised here."""
        with self._lock:
            if not self._started or self._started[0].place != place:
                self._started.clear()
                self._start(place)
            first = self._started[0]
        wait([first.result])
        with self._lock:
            taken = [self._started.popleft()]
            while self._started and has_result(self._started[0].result):
                taken.append(self._started.popleft())
        found = [one.result.result() for one in taken]
        with self._lock:
            self._start_next(found[-1])
        return found

    def end_thread(self, last: Callable[[], None]) -> None:
        """Call `last` as the last function in the thread, and end the thread.

        A thread that hangs is left to the end of the process.
        """
        with self._lock:
            thread, self._thread = self._thread, None
            self._started.clear()
        if thread is None:
            last()
            return
        wait([thread.submit(last)], PATIENCE_SECONDS)
        thread.shutdown(wait=False)

    def _start(self, place: Place) -> None:
        self._started.append(Fetch(place, self._submit(self._fetch_and_start_next, place)))

    def _fetch_and_start_next(self, place: Place) -> Found:
        found = self._fetch(place)
        with self._lock:
            if self._started and self._started[-1].place == place:  # otherwise it was discarded
                self._start_next(found)
        return found

    def _start_next(self, found: Found) -> None:
        """Start the next fetch, unless it was started or `room` fetches wait."""
        place = self._following(found)
        if place is None or len(self._started) >= self._room or any(one.place == place for one in self._started):
            return
        self._start(place)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        self._thread = self._thread or ThreadPoolExecutor(1, "ottla feed")
        return self._thread.submit(function, *arguments)


def has_result(result: Future[Any]) -> bool:
    """Return True if the fetch has succeeded. An error is raised by the `fetch_next` that has the fetch first."""
    return result.done() and result.exception() is None
