"""Producer ids, each given once in the life of a cluster.

The active controller allocates them in blocks, so that most ids need no request to it. The next block is requested before the
present one is used up. The rest of a block is lost when the broker stops.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.errors import ErrorCode, KafkaError

LOW = 100
"""The number of remaining ids at which the next block is requested."""


class ProducerIds:
    """The rest of the present block, and the next block if it was received."""

    def __init__(self, fetch: Callable[[Callable[[int, int], None]], None]) -> None:
        """`fetch` requests a block from the active controller, and passes its first id and size on, at once or later."""
        self._fetch = fetch
        self._next = 0
        self._end = 0
        self._following = range(0)
        self._asked = False

    def next(self) -> int:
        """Return an id that was never given before. KafkaError if there is none yet."""
        self._use_next_block()
        if self._end - self._next < LOW and not self._following and not self._asked:
            self._asked = True
            self._fetch(self._accept)
            self._use_next_block()
        if self._next == self._end:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the controllers have been asked for producer ids")
        drawn = self._next
        self._next += 1
        return drawn

    def _accept(self, first: int, count: int) -> None:
        """Accept a block that was requested; an empty one if the request was rejected."""
        self._asked = False
        self._following = range(first, first + count)

    def _use_next_block(self) -> None:
        if self._next == self._end:
            self._next, self._end, self._following = self._following.start, self._following.stop, range(0)
