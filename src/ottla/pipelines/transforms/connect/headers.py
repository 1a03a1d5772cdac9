"""`HeaderFrom` and `InsertHeader`: fields and constants as headers."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType

from ottla.pipelines.rows import HEADER, HEADERS, checked_names, column, fields_of, in_json, types_of, with_fields
from ottla.pipelines.transforms.connect.cast import as_type
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names


class HeaderFrom(ConnectTransform):
    """Fields become headers; the fields are kept (`copy`) or removed (`move`)."""

    fields: Names
    """The fields."""
    headers: Names
    """The names of the headers, one for each field."""
    operation: Literal["move", "copy"]
    """Keep or remove the fields."""

    @model_validator(mode="after")
    def each_field_has_a_header(self) -> HeaderFrom:
        if len(self.fields) != len(self.headers):
            raise ValueError(f"{len(self.fields)} fields and {len(self.headers)} headers; give a header for each field")
        return self

    def step(self, frame: DataFrame) -> DataFrame:
        kinds, fields = types_of(frame, self.part), fields_of(frame, self.part)
        checked_names(fields, self.fields)
        new = [header(name, fields[one], kinds[one]) for one, name in zip(self.fields, self.headers, strict=True)]
        frame = with_headers(frame, F.array(*new))
        if self.operation == "copy":
            return frame
        return with_fields(frame, self.part, {name: one for name, one in fields.items() if name not in self.fields})


class InsertHeader(ConnectTransform):
    """Adds a header to each record."""

    has_parts: ClassVar[bool] = False
    header: str
    """Its name."""
    value_literal: str = Field(alias="value.literal")
    """The value of the header."""

    def step(self, frame: DataFrame) -> DataFrame:
        return with_headers(frame, F.array(header(self.header, F.lit(self.value_literal), StringType())))


def header(name: str, value: Column, kind: DataType) -> Column:
    """Return a header; values other than bytes are written as text, and structs, arrays and maps as JSON."""
    if not isinstance(kind, BinaryType):
        parts = kind.typeName() in ("struct", "array", "map")
        value = (in_json(value, with_nulls=False) if parts else as_type(value, kind, "string")).cast("binary")
    return F.struct(F.lit(name).alias("key"), value.alias("value"))


def with_headers(frame: DataFrame, new: Column) -> DataFrame:
    """Return the rows with these headers appended."""
    new = new.cast(HEADER)
    there = F.coalesce(column(HEADERS), F.array().cast(HEADER)) if HEADERS in frame.columns else None
    return frame.withColumn(HEADERS, new if there is None else F.concat(there, new))
