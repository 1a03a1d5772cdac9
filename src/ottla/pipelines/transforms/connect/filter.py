"""`Filter`: records go of which a predicate holds."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame

from ottla.pipelines.rows import FAILED, column
from ottla.pipelines.surroundings import Surroundings
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class Filter(ConnectTransform):
    """Leaves out the records of which its predicate holds, or with `negate` the others."""

    has_parts: ClassVar[bool] = False
    predicate: str
    """The name of one of the pipeline's `predicates`."""

    def apply(self, frame: DataFrame, around: Surroundings) -> DataFrame:
        holds = around.predicates[self.predicate].holds(frame)
        kept = holds if self.negate else ~holds
        # What is wrong already is a dead letter, whatever the filter would say of it.
        return frame.where(kept | column(FAILED).isNotNull() if FAILED in frame.columns else kept)
