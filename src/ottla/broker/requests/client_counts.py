"""How many requests came from each client, by its client id; only where somebody reads it.

Bounded: who comes after the first hundred names is counted among the others.
"""

from __future__ import annotations

from collections import Counter

MOST_CLIENTS = 100
MOST_BYTES = 256
"""Of a name; what is longer is cut."""
OTHERS = "(others)"
CLIENT_ID = 10
"""Where the client id begins in a request's header, behind its length, whatever is asked in whatever version."""
NULL = 0x8000
"""From here on a length is below 0: there is no id."""


class ClientCounts:
    """Counted in the broker's loop."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}
        self._others = 0

    def note(self, frame: memoryview) -> None:
        """A request came, whose header is whole up to the length of the client id."""
        length = frame[CLIENT_ID - 2] << 8 | frame[CLIENT_ID - 1]
        name = bytes(frame[CLIENT_ID : CLIENT_ID + min(length, MOST_BYTES)]) if length < NULL else b""
        if name in self._counts or len(self._counts) < MOST_CLIENTS:
            self._counts[name] = self._counts.get(name, 0) + 1
        else:
            self._others += 1

    def by_client(self) -> list[tuple[str, int]]:
        """Who asked most stands first; names that are no text may come out as one."""
        told = Counter({OTHERS: self._others} if self._others else {})
        for name, count in self._counts.items():
            told[name.decode(errors="replace")] += count
        return told.most_common()
