"""How far a pipeline is, from what Spark says of a micro-batch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ottla.spark.progress import lag

OBSERVED = "rows"


@dataclass(frozen=True)
class Progress:
    """After a micro-batch."""

    batch: int
    rows_in: int
    rows_out: int
    """As many as came to the sink."""
    lag: int | None
    """The most offsets that a partition of the source has left; None where the source is no topic."""
    batch_seconds: float
    dead_letters: int = 0
    """Since the pipeline was started."""

    def facts(self) -> dict[str, Any]:
        return asdict(self)


def progress_of(told: Mapping[str, Any], dead_letters: int = 0) -> Progress:
    """From the JSON of a StreamingQueryProgress."""
    behind = [one["maxOffsetsBehindLatest"] for one in lag(told) if one]
    return Progress(
        int(told["batchId"]),
        int(told["numInputRows"]),
        observed(told),
        int(max(behind)) if behind else None,
        round(int(told["durationMs"].get("triggerExecution", 0)) / 1000, 3),
        dead_letters,
    )


def observed(told: Mapping[str, Any]) -> int:
    """The rows that went by where they were counted."""
    counted = (told.get("observedMetrics") or {}).get(OBSERVED) or {}
    return int(counted.get("count", 0))
