"""A column of bytes or None in Arrow's layout."""

from __future__ import annotations

from ottla.model import Buffer
from ottla.records import raw

MAX_BYTES = 0x7FFF_FFFF


class BinaryColumn:
    """`count` values: value i is `data[offsets[i]:offsets[i + 1]]`, or None if bit i of `validity` is not set.

    `offsets` are int32 (format "i"), so that a column holds less than 2 GiB. Bit i of the bitmap is bit i % 8, from the
    lowest, of byte i // 8; `validity` is None without any None.
    """

    __slots__ = ("bits", "bounds", "count", "data", "null_count", "octets", "offsets", "validity")

    def __init__(
        self, count: int, offsets: memoryview, data: Buffer, validity: Buffer | None = None, null_count: int = 0
    ) -> None:
        self.count = count
        self.offsets = offsets
        self.data = data
        self.validity = validity
        self.null_count = null_count
        # The same again, typed in the compiled form.
        self.bounds = offsets
        self.octets = data
        self.bits: Buffer = b"" if validity is None else validity
        if not self.holds():
            raise ValueError(f"these offsets, {len(data)} bytes and bitmap are not a column of {count} values")

    def holds(self) -> bool:
        """Return True if every value lies within the data; access to values relies on it."""
        if self.count < 0 or len(self.bounds) <= self.count or (self.null_count and 8 * len(self.bits) < self.count):
            return False
        good = self.bounds[0] >= 0 and self.bounds[self.count] <= len(self.octets)
        for row in range(self.count):
            good = good & (self.bounds[row] <= self.bounds[row + 1])
        return good

    @classmethod
    def of_nulls(cls, count: int) -> BinaryColumn:
        """Return a column of None."""
        return cls(count, memoryview(bytes(4 * (count + 1))).cast("i"), b"", bytes((count + 7) // 8), count)

    def get(self, row: int) -> bytes | None:
        """Return a copy of the value in `row`."""
        if not 0 <= row < self.count:
            raise IndexError(f"row {row} of {self.count}")
        if self.null_count and not self.bits[row >> 3] >> (row & 7) & 1:
            return None
        return raw.slice_of(self.octets, self.bounds[row], self.bounds[row + 1])

    def size(self, row: int) -> int:
        """Return the size of the value in `row`, -1 for None; the same as the length of `get`, without a copy."""
        if not 0 <= row < self.count:
            raise IndexError(f"row {row} of {self.count}")
        if self.null_count and not self.bits[row >> 3] >> (row & 7) & 1:
            return -1
        return self.bounds[row + 1] - self.bounds[row]


def column_of(items: list[bytes | None]) -> BinaryColumn:
    """Return a column of these values, copied."""
    offsets = memoryview(raw.allocate(4 * (len(items) + 1))).cast("i")
    nulls = measure(items, offsets)
    if not nulls:
        return BinaryColumn(len(items), offsets, b"".join(items))  # type: ignore[arg-type]
    validity = bytearray((len(items) + 7) // 8)
    for row, item in enumerate(items):
        if item is not None:
            validity[row >> 3] |= 1 << (row & 7)
    return BinaryColumn(len(items), offsets, b"".join(filter(None, items)), bytes(validity), nulls)


def measure(items: list[bytes | None], bounds: memoryview) -> int:
    """Write the bounds of each value; return the number of None."""
    end = 0
    nulls = 0
    bounds[0] = 0
    for row in range(len(items)):
        item = items[row]
        if item is None:
            nulls += 1
        else:
            end += len(item)
        if end > MAX_BYTES:
            raise OverflowError(f"the first {row + 1} values take {end} bytes, and a column holds less than 2 GiB")
        bounds[row + 1] = end
    return nulls
