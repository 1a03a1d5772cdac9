"""`Cast`: fields, or the whole, as another type."""

from __future__ import annotations

from pydantic import Field, field_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, DateType, TimestampType

from ottla.config import unknown
from ottla.errors import ConfigError
from ottla.pipelines.rows import fields_of, known, types_of, whole_of, with_fields, with_whole
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
"""Connect's types and Spark's."""


class Cast(ConnectTransform):
    """Casts fields (`spec: "id:int64,price:float64"`), or a value that is no record (`spec: string`)."""

    spec: Names
    """`field:type` pairs with commas between, or one type for the whole."""
    replace_null_with_default: bool = Field(default=True, alias="replace.null.with.default")
    """Accepted: columns have no defaults here, and null stays null."""

    @field_validator("spec")
    @classmethod
    def types_are_known(cls, spec: list[str]) -> list[str]:
        for one in spec:
            kind = one.rpartition(":")[2].strip()
            if kind not in TYPES:
                raise ValueError(f"{one!r}: {unknown('type', kind, TYPES)} The types are {', '.join(TYPES)}.")
        if len(spec) > 1 and not all(":" in one for one in spec):
            raise ValueError("give field:type pairs, or one type alone for the whole")
        return spec

    def step(self, frame: DataFrame) -> DataFrame:
        if ":" not in self.spec[0]:
            whole, kind = whole_of(frame, self.part)
            if hasattr(kind, "fields"):
                raise ConfigError(f"the {self.part} is a record; give field:type pairs")
            return with_whole(frame, self.part, as_type(whole, kind, self.spec[0]), kind)
        kinds, fields = types_of(frame, self.part), fields_of(frame, self.part)
        wanted = {one.rpartition(":")[0].strip(): one.rpartition(":")[2].strip() for one in self.spec}
        for name in known(fields, wanted):
            fields[name] = as_type(fields[name], kinds[name], wanted[name])
        return with_fields(frame, self.part, fields)


def as_type(column: Column, kind: DataType, wanted: str) -> Column:
    """As Connect does it: times are numbers since 1970 or ISO 8601 text, bytes are base64."""
    if wanted == "string":
        if isinstance(kind, TimestampType):
            return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
        return F.base64(column) if isinstance(kind, BinaryType) else column.cast("string")
    if isinstance(kind, TimestampType):
        column = F.unix_millis(column)
    elif isinstance(kind, DateType):
        column = F.unix_date(column)
    return column.cast(TYPES[wanted])
