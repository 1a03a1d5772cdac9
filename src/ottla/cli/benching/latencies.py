"""How long many things took: percentiles, and a picture of their spread in characters. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

PERCENTILES = (0.5, 0.95, 0.99)
COLUMNS = ("MEAN-MS", "P50-MS", "P95-MS", "P99-MS", "MAX-MS")
STEPS = (1, 2, 5)
"""Bounds of the picture's classes, times a power of ten."""
WIDTH = 40


def percentile(ordered: Sequence[float], share: float) -> float:
    """The least value that so large a share of them does not exceed (nearest rank)."""
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def summary(seconds: Sequence[float]) -> tuple[float | None, ...]:
    """What stands under COLUMNS; nothing where there is nothing."""
    if not seconds:
        return (None,) * len(COLUMNS)
    ordered = sorted(seconds)
    found = [sum(ordered) / len(ordered), *(percentile(ordered, share) for share in PERCENTILES), ordered[-1]]
    return tuple(round(each * 1000, 3) for each in found)


def histogram(seconds: Sequence[float], width: int = WIDTH) -> list[str]:
    """A line for each class from the quickest to the slowest: its bounds, a bar, how many."""
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
    """The number of the class that a time falls into: 0 is 1 to 2 ms, 1 is 2 to 5."""
    power = math.floor(math.log10(max(ms, 0.001)))
    step = max(number for number, each in enumerate(STEPS) if each * 10.0**power <= max(ms, 0.001) or not number)
    return power * len(STEPS) + step


def limits(number: int) -> tuple[float, float]:
    """From where to where a class reaches, in ms."""
    return bound(number), bound(number + 1)


def bound(number: int) -> float:
    power, step = divmod(number, len(STEPS))
    return STEPS[step] * 10.0**power


def bar(share: float, width: int) -> str:
    """As long as the share is large; what is there at all is seen."""
    return "█" * max(round(share * width), 1 if share else 0)
