"""The rows after those that are on their way: fetched while Spark works, and handed out when it asks.

A feed is asked in one thread all its life, as drivers of databases want it. The rule: what was fetched ahead counts from when it is
handed out; until then it is a file of a later batch, which another life of the query passes over.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Generic, TypeVar

Found = TypeVar("Found")
Place = TypeVar("Place")
PATIENCE_SECONDS = 10.0
"""How long one that ends waits for a fetch that is under way."""


class Ahead(Generic[Place, Found]):
    """The thread of a feed, and at most one fetch that nobody has asked for yet."""

    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._begun: tuple[Place, Future[Found]] | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns in the feed's thread."""
        return self._submit(function, *arguments).result()

    def begin(self, place: Place, fetch: Callable[[Place], Found]) -> None:
        """Fetch what comes after this place."""
        self._begun = (place, self._submit(fetch, place))

    def take(self, place: Place, fetch: Callable[[Place], Found]) -> Found:
        """What comes after this place; what a fetch ahead could not do is raised here."""
        begun, self._begun = self._begun, None
        if begun is not None and begun[0] == place:
            return begun[1].result()
        found: Found = self.call(fetch, place)
        return found

    def end(self, last: Callable[[], None]) -> None:
        """Do this last, and let the thread go; one that hangs is left to the end of the process."""
        thread, self._thread, self._begun = self._thread, None, None
        if thread is None:
            last()
            return
        wait([thread.submit(last)], PATIENCE_SECONDS)
        thread.shutdown(wait=False)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        self._thread = self._thread or ThreadPoolExecutor(1, "ottla feed")
        return self._thread.submit(function, *arguments)
