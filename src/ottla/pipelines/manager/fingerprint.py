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
LONGEST = 160


class Fingerprint(NamedTuple):
    """What must not change while there is a checkpoint."""

    source: str
    state: tuple[str, ...] = ()
    """The operators of the query that keep state, with their keys."""

    def to_json(self) -> dict[str, Any]:
        return {"source": self.source, "state": list(self.state)}

    @classmethod
    def from_json(cls, known: Mapping[str, Any]) -> Fingerprint:
        return cls(str(known["source"]), tuple(map(str, known["state"])))


def state_of(plan: str) -> tuple[str, ...]:
    """The operators that keep state in an analysed plan of Spark's, as text."""
    found = []
    for line in plan.splitlines():
        match = STATEFUL.match(line)
        if match:
            found.append(" ".join(NUMBERED.sub("", match.group(1) + match.group(2)).split()))
    return tuple(found)


def change(before: Fingerprint, now: Fingerprint) -> str | None:
    """What was changed that the checkpoint does not fit any more, if anything."""
    if before.source != now.source:
        return f"its source was {before.source} and is {now.source}"
    if before.state != now.state:
        return f"its state was kept by {told(before.state)} and would be by {told(now.state)}"
    return None


def told(state: tuple[str, ...]) -> str:
    """Operators in short."""
    text = "; ".join(state) or "nothing"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
