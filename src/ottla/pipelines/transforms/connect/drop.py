"""`Drop`: the key or the value becomes null; `DropHeaders`: removes headers."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.pipelines.rows import HEADERS, KEY, TOMBSTONE, column, types_of, with_fields
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names


class Drop(ConnectTransform):
    """The key (`Drop$Key`) or the value becomes null."""

    def step(self, frame: DataFrame) -> DataFrame:
        if self.part == "key":
            return frame.withColumn(KEY, F.lit(None).cast("binary"))
        nothing = {name: F.lit(None).cast(kind) for name, kind in types_of(frame, "value").items()}
        return with_fields(frame, "value", nothing).withColumn(TOMBSTONE, F.lit(True))


class DropHeaders(ConnectTransform):
    """Removes the headers of these names."""

    has_parts: ClassVar[bool] = False
    headers: Names

    def step(self, frame: DataFrame) -> DataFrame:
        if HEADERS not in frame.columns:
            return frame
        return frame.withColumn(HEADERS, F.filter(column(HEADERS), lambda header: ~header["key"].isin(self.headers)))
