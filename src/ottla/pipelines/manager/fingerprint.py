"""What a checkpoint belongs to, and whether a pipeline that was changed may go on with it.

Pure. The source must be the same, and so must what the state of a query is kept by; all else may change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

STATEFUL = re.compile(
    r"^[\s:+\-*~]*(Aggregate|Deduplicate\w*|Join|TransformWithState\w*|FlatMapGroupsWithState\w*|Distinct)\b(.*)$"
)
"""A line of a plan; `~` stands before what is a stream."""
NUMBERED = re.compile(r"#\d+L?")
"""The number that Spark gives a column in a plan; another in each session."""
MARKED = re.compile(r"-T\d+ms")
"""How a plan marks a column that has a watermark."""
WINDOW = re.compile(r"precisetimestampconversion")
"""In lines of a plan that cut windows: the aggregation above has their name alone."""
SPAN = re.compile(r"\b(\d{4,})\b|cast\((\d+ [\w ]+?) as interval\)")
"""Microseconds, or what a session window says itself."""
LONGEST = 160


class Fingerprint(NamedTuple):
    """What must not change while there is a checkpoint."""

    source: str
    state: tuple[str, ...] = ()
    """The operators of the query that keep state, with their keys."""
    windows: tuple[str, ...] | None = ()
    """How long each window is, and how far apart they begin; None where it was not written down, as once."""

    def to_json(self) -> dict[str, Any]:
        return {"source": self.source, "state": list(self.state), "windows": list(self.windows or ())}

    @classmethod
    def from_json(cls, known: Mapping[str, Any]) -> Fingerprint:
        windows = tuple(map(str, known["windows"])) if "windows" in known else None
        return cls(str(known["source"]), tuple(map(str, known["state"])), windows)


def fingerprint_of(source: str, plan: str) -> Fingerprint:
    """Of a pipeline that reads this, by an analysed plan of Spark's, as text."""
    return Fingerprint(source, state_of(plan), windows_of(plan))


def state_of(plan: str) -> tuple[str, ...]:
    """The operators that keep state in an analysed plan of Spark's, as text."""
    found = []
    for line in plan.splitlines():
        match = STATEFUL.match(line)
        if match:
            found.append(" ".join(NUMBERED.sub("", match.group(1) + match.group(2)).split()))
    return tuple(found)


def windows_of(plan: str) -> tuple[str, ...]:
    """The windows that a plan cuts: `60 s`, `300 s every 60 s`."""
    lines = [MARKED.sub("", NUMBERED.sub("", line)) for line in plan.splitlines() if WINDOW.search(line)]
    return tuple(" every ".join(spans_in(line)) for line in lines)


def spans_in(line: str) -> list[str]:
    """The spans of time that a line of a plan has, the longest first."""
    found = {(int(micros or 0), text or f"{int(micros) / 1e6:g} s") for micros, text in SPAN.findall(line)}
    return [text for _, text in sorted(found, reverse=True)]


def change(before: Fingerprint, now: Fingerprint) -> str | None:
    """What was changed that the checkpoint does not fit any more, if anything."""
    if before.source != now.source:
        return f"its source was {before.source} and is {now.source}"
    if before.state != now.state:
        return f"its state was kept by {told(before.state)} and would be by {told(now.state)}"
    if before.windows is not None and before.windows != now.windows:
        return f"its state was kept by windows of {told(before.windows)} and would be by windows of {told(now.windows or ())}"
    return None


def told(state: tuple[str, ...]) -> str:
    """Operators in short."""
    text = "; ".join(state) or "nothing"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
