"""The fingerprint of a checkpoint, and the check whether a changed pipeline can continue from it.

Pure. The source and the keys of the query's state must be the same; everything else may change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

STATEFUL = re.compile(
    r"^[\s:+\-*~]*(Aggregate|Deduplicate\w*|Join|TransformWithState\w*|FlatMapGroupsWithState\w*|Distinct)\b(.*)$"
)
"""A line of a plan; Spark writes `~` in front of streaming operators."""
NUMBERED = re.compile(r"#\d+L?")
"""The number of a column in a plan, which differs in each session."""
MARKED = re.compile(r"-T\d+ms")
"""The mark of a column with a watermark in a plan."""
WINDOW = re.compile(r"precisetimestampconversion")
"""A mark of the lines of a plan that define windows; the aggregation above only has the windows' names."""
SPAN = re.compile(r"\b(\d{4,})\b|cast\((\d+ [\w ]+?) as interval\)")
"""Microseconds, or the duration of a session window as text."""
LONGEST = 160


class Fingerprint(NamedTuple):
    """The properties that must not change while there is a checkpoint."""

    source: str
    state: tuple[str, ...] = ()
    """The stateful operators of the query, with their keys."""
    windows: tuple[str, ...] | None = ()
    """The length of each window and the time between starts; None in files of earlier versions."""

    def to_json(self) -> dict[str, Any]:
        return {"source": self.source, "state": list(self.state), "windows": list(self.windows or ())}

    @classmethod
    def from_json(cls, known: Mapping[str, Any]) -> Fingerprint:
        windows = tuple(map(str, known["windows"])) if "windows" in known else None
        return cls(str(known["source"]), tuple(map(str, known["state"])), windows)


def fingerprint_of(source: str, plan: str) -> Fingerprint:
    """Return the fingerprint of a pipeline with this source, from the text of Spark's analyzed plan."""
    return Fingerprint(source, state_of(plan), windows_of(plan))


def state_of(plan: str) -> tuple[str, ...]:
    """Return the stateful operators in the text of an analyzed plan."""
    found = []
    for line in plan.splitlines():
        match = STATEFUL.match(line)
        if match:
            found.append(" ".join(NUMBERED.sub("", match.group(1) + match.group(2)).split()))
    return tuple(found)


def windows_of(plan: str) -> tuple[str, ...]:
    """Return the windows in a plan: `60 s`, `300 s every 60 s`."""
    lines = [MARKED.sub("", NUMBERED.sub("", line)) for line in plan.splitlines() if WINDOW.search(line)]
    return tuple(" every ".join(spans_in(line)) for line in lines)


def spans_in(line: str) -> list[str]:
    """Return the durations in a line of a plan, the longest first."""
    found = {(int(micros or 0), text or f"{int(micros) / 1e6:g} s") for micros, text in SPAN.findall(line)}
    return [text for _, text in sorted(found, reverse=True)]


def find_change(before: Fingerprint, now: Fingerprint) -> str | None:
    """Return the change that makes the checkpoint unusable, or None."""
    if before.source != now.source:
        return f"its source was {before.source} and is {now.source}"
    if before.state != now.state:
        return f"its state was kept by {short_text(before.state)} and would be by {short_text(now.state)}"
    if before.windows is not None and before.windows != now.windows:
        return f"its state was kept by windows of {short_text(before.windows)} and would be by windows of {short_text(now.windows or ())}"
    return None


def short_text(state: tuple[str, ...]) -> str:
    """Return operators as a short text."""
    text = "; ".join(state) or "nothing"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
