"""Reuse the memory of completed batches: used pages are faster than fresh ones."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.records import raw

KEPT_BYTES = 4 * 1024 * 1024
"""The limit of kept memory per size; several times what one response releases."""


class SpareBuffers:
    """Keeps buffers of a few sizes; others are released. Any thread may call."""

    __slots__ = ("_by_size",)

    def __init__(self, sizes: Iterable[int]) -> None:
        self._by_size: dict[int, list[bytearray]] = {size: [] for size in sizes}

    def take_buffer(self, size: int) -> bytearray:
        """Return a buffer of `size` bytes with undefined content."""
        try:
            return self._by_size[size].pop()
        except (KeyError, IndexError):
            return raw.allocate(size)

    def return_buffer(self, buffer: bytearray) -> None:
        """Keep a buffer that is not read any more."""
        kept = self._by_size.get(len(buffer))
        if kept is not None and (len(kept) + 1) * len(buffer) <= KEPT_BYTES:
            kept.append(buffer)
