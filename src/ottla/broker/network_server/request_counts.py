"""Counts of requests by API and by client id, and of errors in responses, only while metrics are read.

Bounded: unknown APIs are not counted, and clients beyond the first hundred ids are counted together.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Any

from ottla.broker.network_server import frame_bytes
from ottla.broker.network_server.bounded_names import OTHERS, BoundedNames
from ottla.broker.network_server.response_errors import error_codes
from ottla.protocol.apis import APIS

MOST_BYTES = 256
"""The length at which client ids are truncated."""
CLIENT_ID = 10
"""The position of the client id in a request's header, after its length, in every version of every API."""
LAST_KEY = max(APIS)
NULL = 0x8000
"""An unsigned length from this value on is negative: the client id is null."""


class RequestCounts:
    """Counts requests in the broker's loop."""

    __slots__ = ("_by_api", "_by_client", "_client", "_errors", "_names", "_others", "_times")

    def __init__(self) -> None:
        self._by_api = array("q", bytes(8 * (LAST_KEY + 1)))
        self._by_client: dict[bytes, int] = {}
        self._errors: dict[tuple[int, int], int] = {}
        """By API key and error code."""
        self._names = BoundedNames()
        self._others = 0
        self._client = b""
        """The client id of the last request, which is likely to send the next one."""
        self._times = 0
        """The number of requests of that id in a row that are not in `_by_client` yet."""

    def record(self, frame: memoryview) -> None:
        """Count a request. A frame without a complete header up to the length of the client id is ignored."""
        size = len(frame)
        if size < CLIENT_ID:
            return
        octets = frame_bytes.begin_of(frame)
        key = octets[0] << 8 | octets[1]
        if key <= LAST_KEY:
            self._by_api[key] += 1
        length = octets[CLIENT_ID - 2] << 8 | octets[CLIENT_ID - 1]
        if length >= NULL:
            length = 0
        stop = min(CLIENT_ID + min(length, MOST_BYTES), size)
        if not frame_bytes.is_same(octets, CLIENT_ID, stop, self._client):
            if self._times:
                self._write_down()
            self._client = frame_bytes.copy_of(octets, CLIENT_ID, stop)
        self._times += 1

    def record_errors(self, api_key: int, response: Any) -> None:
        """Count the errors in a response that is not encoded yet. Fast paths encode only responses without errors."""
        for code in error_codes(response):
            self._errors[api_key, code] = self._errors.get((api_key, code), 0) + 1

    def _write_down(self) -> None:
        """Add the count of the last client id."""
        if self._names.admit(self._client):
            self._by_client[self._client] = self._by_client.get(self._client, 0) + self._times
        else:
            self._others += self._times
        self._times = 0

    def by_api(self) -> dict[int, int]:
        """Return the counts by API key."""
        return {key: count for key, count in enumerate(self._by_api) if count}

    def errors(self) -> dict[tuple[int, int], int]:
        """Return the counts of errors by API key and error code."""
        return self._errors

    def by_client(self) -> list[tuple[str, int]]:
        """Return the counts by client id, the highest first. Ids that are not UTF-8 may be combined."""
        if self._times:
            self._write_down()
        totals = Counter({OTHERS: self._others} if self._others else {})
        for name, count in self._by_client.items():
            totals[name.decode(errors="replace")] += count
        return totals.most_common()
