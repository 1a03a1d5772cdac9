"""The sums that distinguish the rows written by a task from those of another plan.

The order of rows is not included: Spark does not guarantee an order after a shuffle.
"""

from __future__ import annotations

from typing import NamedTuple


class Weight(NamedTuple):
    """Sums over the rows of a task, independent of their order."""

    rows: int = 0
    size_bytes: int = 0
    """The size of keys and values."""
    total: int = 0
    """The sum of all these bytes as numbers."""

    def __add__(self, other: object) -> Weight:
        if not isinstance(other, Weight):
            return NotImplemented
        return Weight(self.rows + other.rows, self.size_bytes + other.size_bytes, self.total + other.total)

    def __str__(self) -> str:
        return f"{self.rows:,} rows ({self.size_bytes:,} bytes)"


NOTHING = Weight()
