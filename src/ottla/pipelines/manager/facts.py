"""The status of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

SUMMED = ("rows_in", "rows_out")


@dataclass(frozen=True)
class Facts:
    """The status of one pipeline since its manager started. Each event creates a new object, so any thread may read it."""

    name: str
    source: str
    sink: str
    state: str = "waiting"
    batch: int | None = None
    rows_in: int = 0
    rows_out: int = 0
    lag: int | None = None
    batch_seconds: float | None = None
    """The duration of the last micro-batch."""
    dead_letters: int = 0
    position: int | None = None
    failures: int = 0
    """Consecutive failures."""
    reason: str | None = None
    """The last error; the pipeline may be running again."""
    failed_at: float | None = None
    at: float = 0.0
    """The time of the last event, in seconds since the epoch."""

    def after(self, event: str, facts: Mapping[str, Any], state: str, at: float) -> Facts:
        """Return the status after an event."""
        new: dict[str, Any] = {"state": state, "at": at}
        if event == "progress":
            new |= {**facts, **{name: getattr(self, name) + facts[name] for name in SUMMED}, "failures": 0}
        elif event == "failed":
            new |= {"reason": facts.get("reason"), "failures": facts.get("failures", 1), "failed_at": at}
        return replace(self, **new)

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}
