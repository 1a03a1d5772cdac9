"""How many requests came, by their API and by their client's id; only where somebody reads it.

Bounded: APIs that there are not are left out, and who comes after the first hundred names is counted among the others.
"""

from __future__ import annotations

from array import array
from collections import Counter

from ottla.broker import plain_bytes
from ottla.protocol.apis import APIS

MOST_CLIENTS = 100
MOST_BYTES = 256
"""Of a name; what is longer is cut."""
OTHERS = "(others)"
CLIENT_ID = 10
"""Where the client id begins in a request's header, behind its length, whatever is asked in whatever version."""
LAST_KEY = max(APIS)
NULL = 0x8000
"""From here on a length is below 0: there is no id."""


class RequestCounts:
    """Counted in the broker's loop."""

    __slots__ = ("_by_api", "_by_client", "_client", "_others", "_times")

    def __init__(self) -> None:
        self._by_api = array("q", bytes(8 * (LAST_KEY + 1)))
        self._by_client: dict[bytes, int] = {}
        self._others = 0
        self._client = b""
        """Who asked last, and mostly asks next."""
        self._times = 0
        """How often in a row, which is not in `_by_client` yet."""

    def note(self, frame: memoryview) -> None:
        """A request came; what has no whole header up to the length of the client id is none."""
        size = len(frame)
        if size < CLIENT_ID:
            return
        octets = plain_bytes.begin_of(frame)
        key = octets[0] << 8 | octets[1]
        if key <= LAST_KEY:
            self._by_api[key] += 1
        length = octets[CLIENT_ID - 2] << 8 | octets[CLIENT_ID - 1]
        if length >= NULL:
            length = 0
        stop = min(CLIENT_ID + min(length, MOST_BYTES), size)
        if not plain_bytes.is_same(octets, CLIENT_ID, stop, self._client):
            if self._times:
                self._write_down()
            self._client = plain_bytes.copy_of(octets, CLIENT_ID, stop)
        self._times += 1

    def _write_down(self) -> None:
        """Add how often the client asked that asked last."""
        if self._client in self._by_client or len(self._by_client) < MOST_CLIENTS:
            self._by_client[self._client] = self._by_client.get(self._client, 0) + self._times
        else:
            self._others += self._times
        self._times = 0

    def by_api(self) -> dict[int, int]:
        """Those that were asked for, by their key."""
        return {key: count for key, count in enumerate(self._by_api) if count}

    def by_client(self) -> list[tuple[str, int]]:
        """Who asked most stands first; names that are no text may come out as one."""
        if self._times:
            self._write_down()
        told = Counter({OTHERS: self._others} if self._others else {})
        for name, count in self._by_client.items():
            told[name.decode(errors="replace")] += count
        return told.most_common()
