"""`HoistField`: the key or the value as a single field."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.pipelines.rows import KEY, whole_of, with_fields
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class HoistField(ConnectTransform):
    """The key or the value becomes a record with one field that has the previous value."""

    field: str
    """The field's name."""

    def step(self, frame: DataFrame) -> DataFrame:
        whole, _ = whole_of(frame, self.part)
        if self.part == "key":
            return frame.withColumn(KEY, F.struct(whole.alias(self.field)))
        return with_fields(frame, "value", {self.field: whole})
