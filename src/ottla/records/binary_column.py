"""Many values, one after the other: a column of bytes or None, laid out as Arrow lays it out."""

from __future__ import annotations

from ottla.model import Buffer
from ottla.records import raw


class BinaryColumn:
    """`count` values: value i is `data[offsets[i]:offsets[i + 1]]`, or None where bit i of `validity` is not set.

    `offsets` are int32 (format "i"), so that a column holds less than 2 GiB. Bit i of a bitmap is bit i % 8, from the
    lowest, of its byte i // 8; `validity` is None when nothing is.
    """

    __slots__ = ("bits", "bounds", "count", "data", "null_count", "octets", "offsets", "validity")

    def __init__(
        self, count: int, offsets: memoryview, data: Buffer, validity: Buffer | None = None, null_count: int = 0
    ) -> None:
        if len(offsets) < count + 1 or (validity is not None and 8 * len(validity) < count):
            raise ValueError(
                f"{len(offsets)} offsets and {validity and 8 * len(validity)} bits cannot hold {count} rows"
            )
        self.count = count
        self.offsets = offsets
        self.data = data
        self.validity = validity
        self.null_count = null_count
        # The same again, typed in the compiled form.
        self.bounds = offsets
        self.octets = data
        self.bits: Buffer = b"" if validity is None else validity

    def get(self, row: int) -> bytes | None:
        """The value in `row`, copied."""
        if not 0 <= row < self.count:
            raise IndexError(f"row {row} of {self.count}")
        if self.null_count and not self.bits[row >> 3] >> (row & 7) & 1:
            return None
        return raw.slice_of(self.octets, self.bounds[row], self.bounds[row + 1])

    def size(self, row: int) -> int:
        """Bytes of the value in `row`, -1 if it is None; the same as the length of `get`, without a copy."""
        if not 0 <= row < self.count:
            raise IndexError(f"row {row} of {self.count}")
        if self.null_count and not self.bits[row >> 3] >> (row & 7) & 1:
            return -1
        return self.bounds[row + 1] - self.bounds[row]
