"""The bytes of a request that the fast paths of Produce and Fetch read by position."""

from __future__ import annotations

from ottla.broker.network_server import frame_bytes
from ottla.records import raw


class RequestBytes:
    """A frame and the position in it. In flexible versions sizes are varints and structures end with tags."""

    __slots__ = ("body", "correlation_id", "end", "is_flexible", "octets", "position", "version", "view")

    def __init__(self, frame: memoryview) -> None:
        self.view = frame
        self.octets = raw.pointer(frame)
        self.end = len(frame)
        self.is_flexible = True
        self.position = self.body = self.version = self.correlation_id = 0

    def uvarint(self) -> int:
        """Read an unsigned varint; -1 if it is truncated or longer than four bytes."""
        value = 0
        shift = 0
        while self.position < self.end and shift < 28:
            octet: int = self.octets[self.position]
            self.position += 1
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                return value
            shift += 7
        return -1

    def size(self) -> int:
        """Read the size of an array or of bytes; negative if it is null or truncated."""
        if self.is_flexible:
            return self.uvarint() - 1
        if self.end - self.position < 4:
            return -1
        self.position += 4
        return raw.int32(self.octets, self.position - 4)

    def passes_tags(self) -> bool:
        """Skip the count of tagged fields, which a flexible version has. False if there are some."""
        if not self.is_flexible:
            return True
        at = self.position
        self.position += 1
        return at < self.end and self.octets[at] == 0

    def text(self) -> str | None:
        """Read a text; None if it is null, truncated or not ASCII."""
        if self.is_flexible:
            size = self.uvarint() - 1
        elif self.end - self.position < 2:
            return None
        else:
            size = raw.int16(self.octets, self.position)
            self.position += 2
        start = self.position
        if size < 0 or size > self.end - start or not frame_bytes.is_ascii(self.octets, start, start + size):
            return None
        self.position = start + size
        return str(self.view[start : start + size], "ascii")
