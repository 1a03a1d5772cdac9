"""The dead letters of a pipeline, as a stream in addition to its own.

The stream reads the same records, and applies the same transforms as long as these can mark failed rows, which Kafka
Connect's can. After the first that cannot (SQL or a function), an error fails the whole batch.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.rows import FAILED
from ottla.pipelines.sources.topic import as_dead_letters
from ottla.pipelines.transforms import Transform
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class DeadLetterStream:
    """Builds the stream of dead letters of one pipeline."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._rows: DataFrame | None = None
        self._others: list[DataFrame] = []
        self._follows = False

    def start_with(self, rows: DataFrame | None) -> None:
        """Start with the rows of the source; None if the source has no dead letters."""
        self._rows, self._follows = rows, rows is not None

    def add(self, rows: DataFrame | None) -> None:
        """Add the rows of another input; only rows that cannot be read become dead letters."""
        if rows is not None and FAILED in rows.columns:
            self._others.append(rows)

    def is_taking(self, step: Transform) -> bool:
        """Return True if rows that this transform cannot process become dead letters."""
        self._follows = self._follows and isinstance(step, ConnectTransform)
        return self._follows

    def apply_transform(self, step: Transform, context: PipelineContext) -> None:
        """Apply a transform to the rows."""
        if self._follows and self._rows is not None:
            self._rows = step.apply(self._rows, context)

    def dead_letter_rows(self) -> DataFrame | None:
        """Return the stream of dead letters; None if there cannot be any."""
        mine = [self._rows] if self._rows is not None and FAILED in self._rows.columns else []
        found: DataFrame | None = None
        for rows in [*mine, *self._others]:
            dead_letters = as_dead_letters(rows, self._pipeline)
            found = dead_letters if found is None else found.unionByName(dead_letters)
        return found
