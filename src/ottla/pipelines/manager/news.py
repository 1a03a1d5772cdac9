"""What there is to tell of a pipeline's batches, and of dead letters that come after theirs.

Pure: reports of its queries go in, as Spark gives them (the JSON of a StreamingQueryProgress, oldest first); each counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ottla.pipelines.manager.progress import Progress, observed, progress_of
from ottla.pipelines.rows import KEPT, OFFERED
from ottla.spark.ranges.progress import offset_of

Report = dict[str, Any]


class News:
    """What was heard of a pipeline so far."""

    def __init__(self) -> None:
        self.last_of_rows: str | None = None
        """When the batch began of which its query told last; its dead letters have a query of their own."""
        self.last_of_letters: str | None = None
        self._of_query = 0
        """Dead letters that a query of their own wrote."""
        self._of_sink = 0
        self._of_sources = 0
        """Rows that sources that are no topics put aside."""
        self._progress: Progress | None = None
        """As it was told last."""

    @property
    def _dead_letters(self) -> int:
        return self._of_query + self._of_sink + self._of_sources

    def add_dead_letters(self, count: int) -> None:
        """Count rows that the sink put aside; called by the thread that writes the batch."""
        self._of_sink += count

    def begin_anew(self) -> None:
        """Its queries are other ones from now on; what was counted stays."""
        self.last_of_rows = self.last_of_letters = None

    def hear(self, of_rows: Sequence[Report], of_letters: Sequence[Report] = ()) -> list[Progress]:
        """What is to be told now; a report may come more than once."""
        for report in after(self.last_of_letters, of_letters):
            self.last_of_letters = report["timestamp"]
            self._of_query += observed(report)
        told = []
        for report in after(self.last_of_rows, of_rows):
            self.last_of_rows = report["timestamp"]
            self._of_sources += of_sources(report)
            self._of_sink += observed(report, OFFERED) - observed(report, KEPT)
            if report["durationMs"].get("addBatch") is not None:  # else it looked for rows, and there were none
                told.append(progress_of(report, self._dead_letters))
        return self._remembered(told) or self._remembered(self._late_letters())

    def _late_letters(self) -> list[Progress]:
        """Their query may be behind the last batch of the other, and no next one be in sight."""
        last = self._progress
        if last is None or last.dead_letters == self._dead_letters:
            return []
        return [replace(last, rows_in=0, rows_out=0, dead_letters=self._dead_letters)]

    def _remembered(self, told: list[Progress]) -> list[Progress]:
        if told:
            self._progress = told[-1]
        return told


def of_sources(report: Report) -> int:
    """Return the rows of a batch that sources put aside, which the offset of its end has."""
    if report["durationMs"].get("addBatch") is None:
        return 0
    ends = [offset_of(one.get("endOffset")) for one in report["sources"]]
    return sum(int(end.get("deadLetters", 0)) for end in ends if isinstance(end, dict))


def after(last: str | None, reports: Sequence[Report]) -> list[Report]:
    """Those that were not heard yet; Spark's moments sort as texts."""
    return [report for report in reports if last is None or report["timestamp"] > last]
