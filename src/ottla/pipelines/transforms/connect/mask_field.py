"""`MaskField`: fields become empty, or a replacement."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, NumericType, StringType

from ottla.errors import ConfigError
from ottla.pipelines.model import Scalar
from ottla.pipelines.pipeline_context import text_of
from ottla.pipelines.rows import checked_names, fields_of, types_of, with_fields
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names

EMPTY = {
    "string": "''",
    "boolean": "false",
    "date": "date'1970-01-01'",
    "timestamp": "timestamp_seconds(0)",
    "array": "array()",
    "map": "map()",
}
"""The empty value of each type in Spark SQL; for numbers it is 0."""


class MaskField(ConnectTransform):
    """Fields become the empty value of their type: 0, false, "", no items; or `replacement`."""

    fields: Names
    """The fields."""
    replacement: Scalar | None = None
    """The new value of text and numbers."""

    def step(self, frame: DataFrame) -> DataFrame:
        kinds, fields = types_of(frame, self.part), fields_of(frame, self.part)
        for name in checked_names(fields, self.fields):
            # null stays null, as in Kafka Connect
            fields[name] = F.when(fields[name].isNotNull(), self.mask(name, kinds[name]))
        return with_fields(frame, self.part, fields)

    def mask(self, name: str, kind: DataType) -> Column:
        if self.replacement is None:
            if kind.typeName() not in EMPTY and not isinstance(kind, NumericType):
                raise ConfigError(f"field {name!r} is {kind.simpleString()}, which has no mask; leave it out")
            return F.expr(EMPTY.get(kind.typeName(), "0")).cast(kind)
        if not isinstance(kind, StringType | NumericType):
            raise ConfigError(
                f"field {name!r} is {kind.simpleString()}: replacement is for text and numbers; leave it out"
            )
        return F.lit(text_of(self.replacement)).cast(kind)
