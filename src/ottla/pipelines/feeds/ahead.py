"""The rows after those that are on their way: fetched while Spark works, and handed out when it asks.

A feed is asked in one thread all its life, as drivers of databases want it. The rule: what was fetched ahead counts from when it is
handed out; until then it is files of a later batch, which another life of the query passes over.
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
"""How long one that ends waits for a fetch that is under way."""


class Fetch(NamedTuple, Generic[Place, Found]):
    """One that was begun."""

    place: Place
    result: Future[Found]


class Ahead(Generic[Place, Found]):
    """The thread of a feed, and fetches that nobody has asked for yet, each from where the one before it ended.

    `fetch` gives what comes after a place; `following` is the place at which one goes on after that, None where one does not.
    `room` is how many may wait.
    """

    def __init__(
        self, fetch: Callable[[Place], Found], following: Callable[[Found], Place | None], room: int = 1
    ) -> None:
        self._fetch, self._following, self._room = fetch, following, room
        self._thread: ThreadPoolExecutor | None = None
        self._begun: deque[Fetch[Place, Found]] = deque()
        self._lock = Lock()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns in the feed's thread."""
        return self._submit(function, *arguments).result()

    def take(self, place: Place) -> list[Found]:
        """What comes after this place, as far as it is there, and one fetch at least; what that could not do is raised here."""
        with self._lock:
            if not self._begun or self._begun[0].place != place:
                self._begun.clear()
                self._begin(place)
            first = self._begun[0]
        wait([first.result])
        with self._lock:
            taken = [self._begun.popleft()]
            while self._begun and is_there(self._begun[0].result):
                taken.append(self._begun.popleft())
        found = [one.result.result() for one in taken]
        with self._lock:
            self._go_on(found[-1])
        return found

    def end(self, last: Callable[[], None]) -> None:
        """Do this last, and let the thread go; one that hangs is left to the end of the process."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._begun.clear()
        if thread is None:
            last()
            return
        wait([thread.submit(last)], PATIENCE_SECONDS)
        thread.shutdown(wait=False)

    def _begin(self, place: Place) -> None:
        self._begun.append(Fetch(place, self._submit(self._fetch_and_go_on, place)))

    def _fetch_and_go_on(self, place: Place) -> Found:
        found = self._fetch(place)
        with self._lock:
            if self._begun and self._begun[-1].place == place:  # else it is not wanted any more
                self._go_on(found)
        return found

    def _go_on(self, found: Found) -> None:
        """Begin the one after this, unless it was begun or has no room."""
        place = self._following(found)
        if place is None or len(self._begun) >= self._room or any(one.place == place for one in self._begun):
            return
        self._begin(place)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        self._thread = self._thread or ThreadPoolExecutor(1, "ottla feed")
        return self._thread.submit(function, *arguments)


def is_there(result: Future[Any]) -> bool:
    """Whether it has come; one that went wrong is told to who asks for it first."""
    return result.done() and result.exception() is None
