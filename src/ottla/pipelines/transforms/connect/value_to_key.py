"""`ValueToKey`: the key is built from fields of the value."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.pipelines.rows import KEY, checked_names, fields_of
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names


class ValueToKey(ConnectTransform):
    """The key becomes a record of fields of the value; `ExtractField$Key` then selects one of them."""

    has_parts: ClassVar[bool] = False
    fields: Names
    """The fields."""

    def step(self, frame: DataFrame) -> DataFrame:
        fields = fields_of(frame, "value")
        return frame.withColumn(
            KEY, F.struct(*(fields[name].alias(name) for name in checked_names(fields, self.fields)))
        )
