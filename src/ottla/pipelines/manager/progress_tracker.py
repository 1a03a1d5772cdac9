"""The progress events of a pipeline: its batches, and dead letters written after them.

Pure: the input is reports of its queries as Spark returns them (the JSON of a StreamingQueryProgress, oldest first);
each counts once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ottla.pipelines.manager.progress import PipelineProgress, observed_rows, progress_of
from ottla.pipelines.rows import KEPT, OFFERED
from ottla.spark.ranges.progress import offset_of

Report = dict[str, Any]


class ProgressTracker:
    """The reports of a pipeline so far."""

    def __init__(self) -> None:
        self.last_row_report: str | None = None
        """The start of the last reported batch. The query of dead letters is separate."""
        self.last_dead_letter_report: str | None = None
        self._of_query = 0
        """Dead letters written by their own query."""
        self._of_sink = 0
        self._of_sources = 0
        """Rows put aside by sources that are not topics."""
        self._progress: PipelineProgress | None = None
        """The last event."""

    @property
    def _dead_letters(self) -> int:
        return self._of_query + self._of_sink + self._of_sources

    def add_dead_letters(self, count: int) -> None:
        """Count rows that the sink put aside; called by the thread that writes the batch."""
        self._of_sink += count

    def expect_new_queries(self) -> None:
        """Expect reports of new queries; the counts are kept."""
        self.last_row_report = self.last_dead_letter_report = None

    def process_reports(
        self, row_reports: Sequence[Report], dead_letter_reports: Sequence[Report] = ()
    ) -> list[PipelineProgress]:
        """Return the events for these reports, which may include earlier ones."""
        for report in reports_after(self.last_dead_letter_report, dead_letter_reports):
            self.last_dead_letter_report = report["timestamp"]
            self._of_query += observed_rows(report)
        events = []
        for report in reports_after(self.last_row_report, row_reports):
            self.last_row_report = report["timestamp"]
            self._of_sources += count_source_dead_letters(report)
            self._of_sink += observed_rows(report, OFFERED) - observed_rows(report, KEPT)
            if report["durationMs"].get("addBatch") is not None:  # otherwise the trigger found no rows
                events.append(progress_of(report, self._dead_letters))
        return self._remember(events) or self._remember(self._late_letters())

    def _late_letters(self) -> list[PipelineProgress]:
        """Return an event for dead letters that were written after the last batch, since no further batch may follow."""
        last = self._progress
        if last is None or last.dead_letters == self._dead_letters:
            return []
        return [replace(last, rows_in=0, rows_out=0, dead_letters=self._dead_letters)]

    def _remember(self, events: list[PipelineProgress]) -> list[PipelineProgress]:
        if events:
            self._progress = events[-1]
        return events


def count_source_dead_letters(report: Report) -> int:
    """Return the rows of a batch put aside by sources, as stored in its end offset."""
    if report["durationMs"].get("addBatch") is None:
        return 0
    ends = [offset_of(one.get("endOffset")) for one in report["sources"]]
    return sum(int(end.get("deadLetters", 0)) for end in ends if isinstance(end, dict))


def reports_after(last: str | None, reports: Sequence[Report]) -> list[Report]:
    """Return the reports after `last`; Spark's timestamps sort as text."""
    return [report for report in reports if last is None or report["timestamp"] > last]
