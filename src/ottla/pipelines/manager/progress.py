"""How far a pipeline is, from what Spark says of a micro-batch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ottla.spark.ranges.offsets import StreamOffset
from ottla.spark.ranges.progress import lag, offset_of

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
    position: int | None = None
    """The offsets that its topics have been read to, summed up: records read in all its lives, if none was skipped."""

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
        position(told),
    )


def position(told: Mapping[str, Any]) -> int | None:
    """Of its source; None where that is no topic."""
    try:
        offsets = [StreamOffset.from_dict(offset_of(one.get("endOffset"))).offsets for one in told["sources"]]
    except (ValueError, TypeError, AttributeError):
        return None
    return sum(sum(one.values()) for one in offsets) if offsets else None


def observed(told: Mapping[str, Any], name: str = OBSERVED) -> int:
    """Return the rows that were counted under a name."""
    counted = (told.get("observedMetrics") or {}).get(name) or {}
    return int(counted.get("count", 0))
