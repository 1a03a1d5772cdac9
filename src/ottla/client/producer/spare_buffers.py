"""The memory of batches that have arrived, for those that come: pages that were used are quicker than fresh ones."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.records import raw

KEPT_BYTES = 4 * 1024 * 1024
"""The most that is kept of each size: what one answer of a broker sets free, several times over."""


class SpareBuffers:
    """Keeps buffers of a few sizes; all others come and go. Any thread may call."""

    __slots__ = ("_by_size",)

    def __init__(self, sizes: Iterable[int]) -> None:
        self._by_size: dict[int, list[bytearray]] = {size: [] for size in sizes}

    def take(self, size: int) -> bytearray:
        """A buffer of `size` bytes, with whatever is in them."""
        try:
            return self._by_size[size].pop()
        except (KeyError, IndexError):
            return raw.allocate(size)

    def give_back(self, buffer: bytearray) -> None:
        """Nobody reads it any more, or ever will."""
        kept = self._by_size.get(len(buffer))
        if kept is not None and (len(kept) + 1) * len(buffer) <= KEPT_BYTES:
            kept.append(buffer)
