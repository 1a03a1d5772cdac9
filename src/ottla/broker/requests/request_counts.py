"""How many requests came, by their API and by their client's id; only where somebody reads it.

Bounded: APIs that there are not are left out, and who comes after the first hundred names is counted among the others.
"""

from __future__ import annotations

from collections import Counter

from ottla.broker import plain_bytes
from ottla.protocol.apis import APIS

MOST_CLIENTS = 100
MOST_BYTES = 256
"""Of a name; what is longer is cut."""
OTHERS = "(others)"
CLIENT_ID = 10
"""Where the client id begins in a request's header, behind its length, whatever is asked in whatever version."""
NULL = 0x8000
"""From here on a length is below 0: there is no id."""


class RequestCounts:
    """Counted in the broker's loop."""

    __slots__ = ("_by_api", "_by_client", "_others")

    def __init__(self) -> None:
        self._by_api = [0] * (max(APIS) + 1)
        self._by_client: dict[bytes, int] = {}
        self._others = 0

    def note(self, frame: memoryview) -> None:
        """A request came; what has no whole header up to the length of the client id is none."""
        size = len(frame)
        if size < CLIENT_ID:
            return
        octets = plain_bytes.begin_of(frame)
        key = octets[0] << 8 | octets[1]
        if key < len(self._by_api):
            self._by_api[key] += 1
        length = octets[CLIENT_ID - 2] << 8 | octets[CLIENT_ID - 1]
        if length >= NULL:
            length = 0
        name = plain_bytes.copy_of(octets, CLIENT_ID, min(CLIENT_ID + min(length, MOST_BYTES), size))
        count = self._by_client.get(name)
        if count is not None:
            self._by_client[name] = count + 1
        elif len(self._by_client) < MOST_CLIENTS:
            self._by_client[name] = 1
        else:
            self._others += 1

    def by_api(self) -> dict[int, int]:
        """Those that were asked for, by their key."""
        return {key: count for key, count in enumerate(self._by_api) if count}

    def by_client(self) -> list[tuple[str, int]]:
        """Who asked most stands first; names that are no text may come out as one."""
        told = Counter({OTHERS: self._others} if self._others else {})
        for name, count in self._by_client.items():
            told[name.decode(errors="replace")] += count
        return told.most_common()
