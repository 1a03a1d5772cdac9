"""What a task has written, in numbers that tell it from what it would write under another plan.

The order of rows does not count: after a shuffle Spark does not promise one.
"""

from __future__ import annotations

from typing import NamedTuple


class Weight(NamedTuple):
    """Sums over the rows of a task, which do not depend on their order."""

    rows: int = 0
    size_bytes: int = 0
    """Of keys and values."""
    total: int = 0
    """The sum of all these bytes as numbers."""

    def __add__(self, other: object) -> Weight:
        if not isinstance(other, Weight):
            return NotImplemented
        return Weight(self.rows + other.rows, self.size_bytes + other.size_bytes, self.total + other.total)

    def __str__(self) -> str:
        return f"{self.rows:,} rows ({self.size_bytes:,} bytes)"


NOTHING = Weight()
