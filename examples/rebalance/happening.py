"""All events in order of time: the steps of the story, the events of the broker, and the events of the members.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.client.consumer.events import Assigned, Left, Lost, Revoked
from ottla.coordination.groups.classic import notes
from ottla.trace import Moment

STORY, BROKER = "story", "broker"
UUID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TOLD = (Assigned, Revoked, Lost, Left)
"""The events of a member that appear in the time line."""


class Happening(NamedTuple):
    """An event with its time and source."""

    at_ms: int
    who: str
    """`story`, `broker`, or a member's name."""
    event: Any


def merged(moments: Iterable[tuple[str, Iterable[Moment]]]) -> list[Happening]:
    """Return all events for the time line, by time."""
    found = (Happening(at_ms, who, event) for who, told in moments for at_ms, event in told)
    worthy = (each for each in found if each.who in (STORY, BROKER) or isinstance(each.event, TOLD))
    return sorted((each for each in worthy if not isinstance(each.event, notes.MemberIdGiven)), key=lambda e: e.at_ms)


def lines(happenings: list[Happening]) -> list[str]:
    """Return the time line, in seconds from its start."""
    start = happenings[0].at_ms
    told = []
    for at_ms, who, event in happenings:
        if who == STORY:
            told.append(f"\n{(at_ms - start) / 1000:7.3f}  {event}")
        else:
            told.append(f"{(at_ms - start) / 1000:7.3f}    {who:8s} {sentence(event)}")
    return told


def sentence(event: Any) -> str:
    """Describe an event. Texts of the broker's log are shortened, and the random parts of names are removed."""
    match event:
        case notes.RebalanceStarted(generation=generation, reason=reason):
            text = f"rebalance after generation {generation}: {reason}"
        case notes.Stabilized(generation=generation, members=members):
            text = f"generation {generation} has {members} member{'s' * (members != 1)}"
        case notes.Assigned(leader=leader, generation=generation):
            text = f"{leader} has shared out generation {generation}"
        case _:
            text = str(event)
    return UUID.sub("", text)


class Span(NamedTuple):
    """A period in which a partition had one owner."""

    partition: int
    owner: str
    start: float
    """Seconds from the start."""
    end: float


def spans(happenings: list[Happening]) -> list[Span]:
    """Return the owner of each partition over time."""
    start, end = happenings[0].at_ms, happenings[-1].at_ms
    since: dict[tuple[str, int], int] = {}
    found: list[Span] = []
    for at_ms, who, event in happenings:
        before = {partition for owner, partition in since if owner == who}
        match event:
            case Assigned(partitions=partitions):
                now = {tp.partition for tp in partitions}
            case Revoked(partitions=partitions) | Lost(partitions=partitions):
                now = before - {tp.partition for tp in partitions}
            case Left():
                now = set()
            case _:
                continue
        ended = {partition: since.pop((who, partition)) for partition in before - now}
        found += [Span(partition, who, (at - start) / 1000, (at_ms - start) / 1000) for partition, at in ended.items()]
        since.update({(who, partition): at_ms for partition in now - before})
    left = (Span(p, who, (at - start) / 1000, (end - start) / 1000) for (who, p), at in since.items())
    return sorted([*found, *left])
