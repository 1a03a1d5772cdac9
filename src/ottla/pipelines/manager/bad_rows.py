"""The rows of a pipeline that are put aside, as a stream beside its own.

It reads the same records, and takes the same steps as long as these can say of each row whether they can do it: Kafka Connect's.
After the first that cannot, SQL or a function, an error is the whole batch's.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from ottla.pipelines.rows import FAILED
from ottla.pipelines.sources.topic import as_dead_letters
from ottla.pipelines.surroundings import Surroundings
from ottla.pipelines.transforms import Transform
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class Letters:
    """The dead letters of one pipeline, while it is built."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._rows: DataFrame | None = None
        self._others: list[DataFrame] = []
        self._follows = False

    def begin(self, rows: DataFrame | None) -> None:
        """With the rows of its source; None: nothing of it is put aside."""
        self._rows, self._follows = rows, rows is not None

    def add(self, rows: DataFrame | None) -> None:
        """The rows of another input, of which only what cannot be read is put aside."""
        if rows is not None and FAILED in rows.columns:
            self._others.append(rows)

    def takes(self, step: Transform) -> bool:
        """Whether rows that this step cannot do are put aside."""
        self._follows = self._follows and isinstance(step, ConnectTransform)
        return self._follows

    def follow(self, step: Transform, around: Surroundings) -> None:
        """Take a step."""
        if self._follows and self._rows is not None:
            self._rows = step.apply(self._rows, around)

    def all(self) -> DataFrame | None:
        """All of them; None where there can be none."""
        mine = [self._rows] if self._rows is not None and FAILED in self._rows.columns else []
        found: DataFrame | None = None
        for rows in [*mine, *self._others]:
            letters = as_dead_letters(rows, self._pipeline)
            found = letters if found is None else found.unionByName(letters)
        return found
