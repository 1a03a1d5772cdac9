"""`Filter`: removes records by a predicate."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame

from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.rows import FAILED, column
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class Filter(ConnectTransform):
    """Removes the records that fulfil its predicate, or with `negate` the others."""

    has_parts: ClassVar[bool] = False
    predicate: str
    """The name of one of the pipeline's `predicates`."""

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        holds = context.predicates[self.predicate].holds(frame)
        kept = holds if self.negate else ~holds
        # A failed row becomes a dead letter, independent of the filter.
        return frame.where(kept | column(FAILED).isNotNull() if FAILED in frame.columns else kept)
