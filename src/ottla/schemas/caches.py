"""A bounded cache for threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class BoundedCache(Generic[V]):
    """Keeps the `capacity` most recently used values, each for `ttl` seconds if that is given."""

    def __init__(self, capacity: int, ttl: float | None, monotonic: Callable[[], float]) -> None:
        self._capacity = capacity
        self._ttl = ttl
        self._monotonic = monotonic
        self._values: OrderedDict[Hashable, tuple[V, float]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> V | None:
        """Return the value; None if there is none, or it is too old."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            if self._ttl is not None and self._monotonic() >= found[1]:
                del self._values[key]
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: V) -> None:
        """Store a value; the value that was not used for longest is removed if there are too many."""
        with self._lock:
            self._values[key] = value, 0 if self._ttl is None else self._monotonic() + self._ttl
            self._values.move_to_end(key)
            while len(self._values) > self._capacity:
                self._values.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
