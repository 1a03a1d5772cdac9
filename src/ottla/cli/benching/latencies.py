"""Percentiles and a text histogram of latencies. Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

PERCENTILES = (0.5, 0.95, 0.99)
COLUMNS = ("MEAN-MS", "P50-MS", "P95-MS", "P99-MS", "MAX-MS")
STEPS = (1, 2, 5)
"""Bounds of the histogram's classes, times a power of ten."""
WIDTH = 40


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that is not exceeded by `share` (0 to 1) of the values (nearest rank)."""
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def summary(seconds: Sequence[float]) -> tuple[float | None, ...]:
    """Return the cells of COLUMNS in milliseconds; None in each cell if there are no latencies."""
    if not seconds:
        return (None,) * len(COLUMNS)
    ordered = sorted(seconds)
    found = [sum(ordered) / len(ordered), *(percentile(ordered, share) for share in PERCENTILES), ordered[-1]]
    return tuple(round(each * 1000, 3) for each in found)


def histogram(seconds: Sequence[float], width: int = WIDTH) -> list[str]:
    """Return one line per class, from the fastest to the slowest: bounds, bar, count."""
    if not seconds:
        return []
    classes = Counter(class_of(each * 1000) for each in seconds)
    most = max(classes.values())
    bounds = [(number, *limits(number)) for number in range(min(classes), max(classes) + 1)]
    names = [f"{low:g}-{high:g} ms" for _, low, high in bounds]
    widest = max(map(len, names))
    return [
        f"{name:>{widest}}  {bar(classes[number] / most, width):<{width}}  {classes[number]}"
        for name, (number, _, _) in zip(names, bounds, strict=True)
    ]


def class_of(ms: float) -> int:
    """Return the number of the class of a latency: 0 is 1 to 2 ms, 1 is 2 to 5 ms."""
    power = math.floor(math.log10(max(ms, 0.001)))
    step = max(number for number, each in enumerate(STEPS) if each * 10.0**power <= max(ms, 0.001) or not number)
    return power * len(STEPS) + step


def limits(number: int) -> tuple[float, float]:
    """Return the lower and the upper bound of a class in ms."""
    return bound(number), bound(number + 1)


def bound(number: int) -> float:
    power, step = divmod(number, len(STEPS))
    return STEPS[step] * 10.0**power


def bar(share: float, width: int) -> str:
    """Return a bar with a length in proportion to `share`; at least one character if `share` is not 0."""
    return "█" * max(round(share * width), 1 if share else 0)
