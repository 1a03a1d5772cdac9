"""The progress of a pipeline, from Spark's report of a micro-batch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ottla.spark.ranges.offsets import StreamOffset
from ottla.spark.ranges.progress import lag, offset_of

OBSERVED = "rows"


@dataclass(frozen=True)
class PipelineProgress:
    """The progress after a micro-batch."""

    batch: int
    rows_in: int
    rows_out: int
    """Rows that reached the sink."""
    lag: int | None
    """The most unread offsets of a partition of the source; None if the source is not a topic."""
    batch_seconds: float
    dead_letters: int = 0
    """Rows put aside since the pipeline was started."""
    position: int | None = None
    """The sum of the offsets read so far: the number of records read in all runs, if none was skipped."""

    def facts(self) -> dict[str, Any]:
        return asdict(self)


def progress_of(report: Mapping[str, Any], dead_letters: int = 0) -> PipelineProgress:
    """Return the progress from the JSON of a StreamingQueryProgress."""
    behind = [one["maxOffsetsBehindLatest"] for one in lag(report) if one]
    return PipelineProgress(
        int(report["batchId"]),
        int(report["numInputRows"]),
        observed_rows(report),
        int(max(behind)) if behind else None,
        round(int(report["durationMs"].get("triggerExecution", 0)) / 1000, 3),
        dead_letters,
        sum_offsets(report),
    )


def sum_offsets(report: Mapping[str, Any]) -> int | None:
    """Return the sum of the source's offsets; None if it is not a topic."""
    try:
        offsets = [StreamOffset.from_dict(offset_of(one.get("endOffset"))).offsets for one in report["sources"]]
    except (ValueError, TypeError, AttributeError):
        return None
    return sum(sum(one.values()) for one in offsets) if offsets else None


def observed_rows(report: Mapping[str, Any], name: str = OBSERVED) -> int:
    """Return the rows observed under a name."""
    counted = (report.get("observedMetrics") or {}).get(name) or {}
    return int(counted.get("count", 0))
