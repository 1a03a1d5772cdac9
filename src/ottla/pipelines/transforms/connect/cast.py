"""`Cast`: fields, or the whole key or value, with another type."""

from __future__ import annotations

from pydantic import Field, field_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, DateType, StringType, TimestampType

from ottla.config import unknown
from ottla.errors import ConfigError
from ottla.pipelines.rows import checked_names, fields_of, types_of, whole_of, with_fields, with_whole
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names

TYPES = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
}
"""Kafka Connect's types and Spark's."""


class Cast(ConnectTransform):
    """Casts fields (`spec: "id:int64,price:float64"`), or a value that is not a record (`spec: string`)."""

    spec: Names
    """`field:type` pairs with commas between, or one type for the whole."""
    replace_null_with_default: bool = Field(default=True, alias="replace.null.with.default")
    """Accepted without effect: columns have no defaults here, and null stays null."""

    @field_validator("spec")
    @classmethod
    def types_are_known(cls, spec: list[str]) -> list[str]:
        for one in spec:
            kind = one.rpartition(":")[2].strip()
            if kind not in TYPES:
                raise ValueError(f"{one!r}: {unknown('type', kind, TYPES)} The types are {', '.join(TYPES)}.")
        if len(spec) > 1 and not all(":" in one for one in spec):
            raise ValueError("give field:type pairs, or one type alone for the whole value")
        return spec

    def step(self, frame: DataFrame) -> DataFrame:
        return self.cast(frame, tried=False)

    def tried(self, frame: DataFrame) -> DataFrame:
        return self.cast(frame, tried=True)

    def cast(self, frame: DataFrame, *, tried: bool) -> DataFrame:
        """Return the rows with the cast; if `tried`, a value that cannot be cast becomes null and the row is marked as failed."""
        if ":" not in self.spec[0]:
            whole, kind = whole_of(frame, self.part)
            if hasattr(kind, "fields"):
                raise ConfigError(f"the {self.part} is a record; give field:type pairs")
            one = as_type(whole, kind, self.spec[0], tried=tried)
            marked = self.with_untried(frame, {self.part: whole}, {self.part: one}) if tried else frame
            return with_whole(marked, self.part, one, kind)
        kinds, fields = types_of(frame, self.part), fields_of(frame, self.part)
        wanted = {one.rpartition(":")[0].strip(): one.rpartition(":")[2].strip() for one in self.spec}
        old = {name: fields[name] for name in checked_names(fields, wanted)}
        new = {name: as_type(one, kinds[name], wanted[name], tried=tried) for name, one in old.items()}
        marked = self.with_untried(frame, old, new) if tried else frame
        return with_fields(marked, self.part, fields | new)


def as_type(column: Column, kind: DataType, wanted: str, *, tried: bool = False) -> Column:
    """Return a column in Kafka Connect's conversion: times are numbers since 1970 or ISO 8601 text, bytes are base64.

    If `tried`, the result is null for a value that cannot be converted.
    """
    if wanted == "string":
        if isinstance(kind, TimestampType):
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
        return F.base64(column) if isinstance(kind, BinaryType) else column.cast("string")
    if isinstance(kind, TimestampType):
        column = F.unix_millis(column)
    elif isinstance(kind, DateType):
        column = F.unix_date(column)
    if wanted == "boolean" and isinstance(kind, StringType):
        return F.lower(column) == "true"  # as Java's Boolean.parseBoolean, which Kafka Connect calls
    return column.try_cast(TYPES[wanted]) if tried else column.cast(TYPES[wanted])
