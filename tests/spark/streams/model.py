"""The expected results of stream operations, in plain Python without Spark. Time is evaluated between batches, as in
Spark: a window accepts rows until a batch starts with a watermark past its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from tests.spark.streams.feed import Event

Window = tuple[int, int]


def watermarks(batches: Sequence[Sequence[Event]], grace: int) -> Iterator[tuple[int, int, Sequence[Event]]]:
    """Each batch with the watermark of the one before it and its own; at the end an empty one, for what is closed by then."""
    before = now = seen = -(10**9)
    for batch in [*batches, ()]:
        yield before, now, batch
        seen = max([seen, *(event.t for event in batch)])
        before, now = now, max(now, seen - grace)


def tumbling(t: int, size: int) -> list[Window]:
    return [(t // size * size, t // size * size + size)]


def hopping(t: int, size: int, advance: int) -> list[Window]:
    first = t // advance * advance
    return [
        (start, start + size)
        for start in range(first - size + advance, first + 1, advance)
        if start <= t < start + size
    ]


def closed_windows(
    batches: Sequence[Sequence[Event]], grace: int, windows: Callable[[int], list[Window]]
) -> list[tuple[Window, str, int, int]]:
    """Window, key, count and sum of each window that was closed, once."""
    open_windows: dict[tuple[Window, str], list[int]] = defaultdict(list)
    found = []
    for before, now, batch in watermarks(batches, grace):
        for event in batch:
            for window in windows(event.t):
                if window[1] > before:
                    open_windows[window, event.k].append(event.v or 0)
        for (window, key), values in list(open_windows.items()):
            if window[1] <= now:
                found.append((window, key, len(values), sum(values)))
                del open_windows[window, key]
    return sorted(found)


def closed_sessions(batches: Sequence[Sequence[Event]], grace: int, gap: int) -> list[tuple[Window, str, int]]:
    """Window, key and count of each session that was closed."""
    open_sessions: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    found = []
    for before, now, batch in watermarks(batches, grace):
        for event in batch:
            if event.t + gap > before:
                open_sessions[event.k].append((event.t, event.t + gap, 1))
        for key, sessions in open_sessions.items():
            merged = merge(sessions)
            found += [((start, end), key, count) for start, end, count in merged if end <= now]
            open_sessions[key] = [one for one in merged if one[1] > now]
    return sorted(found)


def merge(sessions: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Merge intervals that touch or overlap."""
    merged: list[tuple[int, int, int]] = []
    for start, end, count in sorted(sessions):
        if merged and start <= merged[-1][1]:
            last = merged.pop()
            start, end, count = last[0], max(last[1], end), last[2] + count
        merged.append((start, end, count))
    return merged


def first_of_each(batches: Sequence[Sequence[Event]], within: int) -> list[int]:
    """The numbers of the rows that are the first of their key, as long as that is remembered."""
    until: dict[str, int] = {}
    found = []
    for before, now, batch in watermarks(batches, within):
        for event in batch:
            if event.t > before and event.k not in until:
                until[event.k] = event.t + within
                found.append(event.n)
        until = {key: end for key, end in until.items() if end > now}
    return sorted(found)


def table_changes(batches: Sequence[Sequence[Event]]) -> list[list[tuple[str, int | None]]]:
    """The last value of each key that a batch has."""
    return [sorted({event.k: event.v for event in batch}.items(), key=str) for batch in batches]


def joined_with_table(
    asks: Sequence[Sequence[Event]], table: Sequence[Sequence[Event]], keep_all: bool
) -> list[tuple[int, int | None]]:
    """The number of each row of the stream, with the table's value."""
    known: dict[str, int] = {}
    found: list[tuple[int, int | None]] = []
    for batch, changes in zip(asks, table, strict=True):
        both = [(event.t, 1, event) for event in batch] + [(event.t, 0, event) for event in changes]
        for _, side, event in sorted(both, key=lambda one: (one[0], one[1])):
            if side == 0:
                known.pop(event.k, None)
                if event.v is not None:
                    known[event.k] = event.v
            elif event.k in known or keep_all:
                found.append((event.n, known.get(event.k)))
    return sorted(found, key=str)


def close_pairs(left: Sequence[Event], right: Sequence[Event], within: int) -> set[tuple[int, int]]:
    """All pairs that there are, whenever they came."""
    return {(a.n, b.n) for a in left for b in right if a.k == b.k and abs(a.t - b.t) <= within}


def never_late(batches: Sequence[Sequence[Event]], grace: int) -> set[int]:
    """The numbers of rows that came before anything that is later than they are by more than the grace."""
    seen, found = -(10**9), set()
    for batch in batches:
        found |= {event.n for event in batch if event.t >= seen - grace}
        seen = max([seen, *(event.t for event in batch)])
    return found
