"""What a writer was told of what it wrote, and what is there: counted, and nothing read or waited for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

Row = tuple[int, str]
"""The number that a record bears, and the attempt in which it was written: where it was not acknowledged it may be there or not."""


class Tally(NamedTuple):
    """All of it 0 where all is well."""

    missing: int = 0
    twice: int = 0
    out_of_order: int = 0
    aborted: int = 0
    """Written in attempts that were aborted, and read all the same."""

    def __add__(self, other: object) -> Tally:
        assert isinstance(other, Tally)
        return Tally(*(mine + its for mine, its in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return f"{self.missing} missing, {self.twice} twice, {self.out_of_order} out of order, {self.aborted} aborted"


def tally(rows: Sequence[Row], acknowledged: Collection[int], aborted: Collection[str] = ()) -> Tally:
    """What is there in its order, against what was told."""
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
    """How often a reader of numbers without a gap went beyond one that it had not read; to read again is its right."""
    jumps, highest = 0, -1
    for number in seen:
        jumps += number > highest + 1
        highest = max(highest, number)
    return jumps
