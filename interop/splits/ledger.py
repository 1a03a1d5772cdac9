"""Compare the acknowledgements of a writer with the records in the log. Pure: it neither reads nor waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

Row = tuple[int, str]
"""The number of a record and the attempt that wrote it. An unacknowledged number may be in the log or not."""


class Tally(NamedTuple):
    """The number of errors of each kind; 0 means that there are none."""

    missing: int = 0
    twice: int = 0
    out_of_order: int = 0
    aborted: int = 0
    """Rows of aborted attempts that were read."""

    def __add__(self, other: object) -> Tally:
        assert isinstance(other, Tally)
        return Tally(*(mine + its for mine, its in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return f"{self.missing} missing, {self.twice} twice, {self.out_of_order} out of order, {self.aborted} aborted"


def tally(rows: Sequence[Row], acknowledged: Collection[int], aborted: Collection[str] = ()) -> Tally:
    """Count the lost, repeated and unexpected rows, by comparing the rows in order with the acknowledgements."""
    kept = [(number, attempt) for number, attempt in rows if attempt not in set(aborted)]
    counts = Counter(number for number, _ in kept)
    numbers = [number for number, _ in kept]
    return Tally(
        missing=len(set(acknowledged) - set(counts)),
        twice=sum(count - 1 for count in counts.values()),
        out_of_order=sum(later < earlier for earlier, later in pairwise(numbers)),
        aborted=len(rows) - len(kept),
    )


def skipped(seen: Sequence[int]) -> int:
    """Count the gaps in the numbers of a reader. Reading a number again is allowed."""
    jumps, highest = 0, -1
    for number in seen:
        jumps += number > highest + 1
        highest = max(highest, number)
    return jumps
