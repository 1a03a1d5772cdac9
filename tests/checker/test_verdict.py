"""The judge: sound histories at random are acquitted, and each anomaly put into one is found."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checker.generator import planned
from tests.checker.history import (
    Acknowledged,
    Began,
    Ended,
    Ending,
    Event,
    Final,
    Position,
    Promised,
    Read,
    Saw,
    Sent,
    Took,
    event_of,
    read,
    write,
)
from tests.checker.verdict import verdict

Events = list[Event]


def sound(counts: list[int], ends: list[bool], heard: list[bool]) -> Events:
    """The history of a correct broker for one feeder and one copier with those outcomes. Some responses are lost."""
    events: Events = [Took("c", 1), Position("g", "in-0", -1, 0)]
    total = sum(counts)
    for number in range(total):
        events += [Sent(f"f:{number}", "in-0", "f", number), Acknowledged(f"f:{number}", "in-0", number)]
    seen: list[tuple[int, str]] = []
    offset = position = number = 0
    for turn, (count, end, reported) in enumerate(zip(counts, ends, heard, strict=True)):
        key = f"c.1.{turn}"
        events.append(Began(key, "c", 1))
        rows = []
        for at in range(position, position + count):
            number += 1
            events += [Read(key, "in-0", at, f"f:{at}"), Sent(f"c:{number}", "out-0", "c", number, key)]
            events.append(Acknowledged(f"c:{number}", "out-0", offset))
            rows.append((offset, f"c:{number}"))
            offset += 1
        events += [Promised(key, "g", "in-0", position + count), Ending(key, end)]
        if reported:
            events.append(Ended(key, end))
        offset += 1  # the marker
        if end:
            position += count
            events.append(Saw("r", "out-0", tuple(rows), start=0))
            seen += rows
        events.append(Position("g", "in-0", position or -1, len(events)))
    events.append(Final("in-0", tuple((at, f"f:{at}") for at in range(total)), total, total))
    return [*events, Final("out-0", tuple(seen), offset, offset)]


turns = st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.booleans()), min_size=1, max_size=6)


@given(turns)
def test_a_correct_brokers_history_has_no_violation(turns: list[tuple[int, bool, bool]]) -> None:
    counts, ends, heard = (list(column) for column in zip(*turns, strict=True))
    assert verdict(sound(counts, ends, heard)) == []


@given(turns)
def test_a_history_is_unchanged_after_writing_and_reading(turns: list[tuple[int, bool, bool]]) -> None:
    events = sound(*(list(column) for column in zip(*turns, strict=True)))
    file = io.StringIO()
    write(events, file)
    assert read(file.getvalue().splitlines()) == events


def example() -> Events:
    """Three transactions: committed, aborted, committed."""
    return sound([2, 1, 2], [True, False, True], [True, True, True])


def final_of(events: Events, place: str) -> tuple[int, Final]:
    return next((at, event) for at, event in enumerate(events) if isinstance(event, Final) and event.place == place)


def with_rows(events: Events, place: str, change: Callable[[list[tuple[int, str]]], None]) -> Events:
    """Another end."""
    at, final = final_of(events, place)
    rows = list(final.rows)
    change(rows)
    return [*events[:at], replace(final, rows=tuple(rows)), *events[at + 1 :]]


def lost(events: Events) -> Events:
    return with_rows(events, "in-0", lambda rows: rows.remove((4, "f:4")))


def doubled(events: Events) -> Events:
    return with_rows(events, "in-0", lambda rows: rows.append((5, "f:4")))


def reordered(events: Events) -> Events:
    def swap(rows: list[tuple[int, str]]) -> None:
        rows[0], rows[1] = (0, "f:1"), (1, "f:0")

    return with_rows(events, "in-0", swap)


def moved(events: Events) -> Events:
    return with_rows(events, "in-0", lambda rows: rows.__setitem__(4, (9, "f:4")))


def phantom(events: Events) -> Events:
    return with_rows(events, "in-0", lambda rows: rows.append((5, "nobody's")))


def unseen(events: Events) -> Events:
    return with_rows(events, "out-0", lambda rows: rows.clear())


def seen_aborted(events: Events) -> Events:
    return with_rows(events, "out-0", lambda rows: rows.insert(2, (3, "c:3")))


def torn(events: Events) -> Events:
    """The outcome of the last transaction is unknown, and half of it was written."""
    unheard = [event for event in events if event != Ended("c.1.2", True)]
    return with_rows(unheard, "out-0", lambda rows: rows.remove((6, "c:5")))


def early(events: Events) -> Events:
    at = events.index(Ending("c.1.0", True))
    return [*events[:at], Saw("hasty", "out-0", ((0, "c:1"),), start=0), *events[at:]]


def skipped(events: Events) -> Events:
    return [*events, Saw("blind", "out-0", ((1, "c:2"),), start=0)]


def hanging(events: Events) -> Events:
    at, final = final_of(events, "out-0")
    return [*events[:at], replace(final, stable=final.stable - 1)]


def zombie(events: Events) -> Events:
    at = events.index(Ending("c.1.2", True))
    return [*events[:at], Took("c", 2), *events[at:]]


def offset_of_aborted(events: Events) -> Events:
    at = events.index(Ended("c.1.1", False))
    return [*events[: at + 1], Position("g", "in-0", 3, at), *events[at + 1 :]]


def offset_lost(events: Events) -> Events:
    return [*events, Position("g", "in-0", 2, len(events))]


def taken_twice(events: Events) -> Events:
    at = events.index(Ending("c.1.2", True))
    return [*events[:at], Read("c.1.2", "in-0", 1, "f:1"), *events[at:]]


def not_taken(events: Events) -> Events:
    return [event for event in events if event != Read("c.1.2", "in-0", 2, "f:2")]


def inconsistent(events: Events) -> Events:
    wider = sound([3], [True], [True])
    return [event for event in wider if event != Read("c.1.0", "in-0", 1, "f:1")]


ANOMALIES = (
    lost,
    doubled,
    reordered,
    moved,
    phantom,
    unseen,
    seen_aborted,
    torn,
    early,
    skipped,
    hanging,
    zombie,
    offset_of_aborted,
    offset_lost,
    taken_twice,
    not_taken,
    inconsistent,
)


@pytest.mark.parametrize("spoil", ANOMALIES)
def test_each_anomaly_is_found_under_its_name(spoil: Callable[[Events], Events]) -> None:
    assert spoil.__name__ in {anomaly.kind for anomaly in verdict(spoil(example()))}


def test_an_unknown_event_is_an_error() -> None:
    with pytest.raises(KeyError):
        event_of({"event": "Miracle"})


def test_the_same_seed_plans_the_same() -> None:
    assert planned(7) == planned(7) != planned(8)
