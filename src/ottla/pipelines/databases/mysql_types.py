"""Types of MySQL's columns and Spark's. Pure.

Booleans are read as numbers, because MySQL's boolean is `tinyint(1)` and may hold 2.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from ottla.pipelines.databases.table import TableColumn
from ottla.pipelines.databases.times import number_of

KINDS: dict[str, DataType] = {
    "tinyint": ShortType(),
    "smallint": ShortType(),
    "mediumint": IntegerType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "datetime": TimestampNTZType(),
    "timestamp": TimestampType(),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), StringType()),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), BinaryType()),
}
"""Types that Spark has too; all others are read as text in MySQL's notation."""
UNSIGNED: dict[str, DataType] = {"smallint": IntegerType(), "int": LongType(), "bigint": DecimalType(20, 0)}
"""Unsigned types that need a wider type."""
SHAPES = (
    *("geometry", "point", "linestring", "polygon", "geometrycollection", "geomcollection"),
    *("multipoint", "multilinestring", "multipolygon"),
)
QUERIES = {
    "float": "{} + 0e0",  # MySQL would write six digits
    "bit": "bin({})",
    **dict.fromkeys(SHAPES, "st_astext({})"),
}
AS_TEXT = "cast({} as char)"

TYPES: dict[type[DataType], str] = {
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    BooleanType: "boolean",
    StringType: "longtext",
    BinaryType: "longblob",
    DateType: "date",
    TimestampType: "datetime(6)",  # MySQL's timestamp ends in 2038
    TimestampNTZType: "datetime(6)",
}
KEYS: dict[type[DataType], str] = {StringType: "varchar(255)", BinaryType: "varbinary(255)"}
"""Types for key columns, which need a length in MySQL."""


def column_of(
    name: str, kind: str, declared: str, precision: int | None, scale: int | None, is_nullable: int
) -> TableColumn:
    """Return a column as described by the catalogue."""
    found = KINDS.get(kind)
    if "unsigned" in declared:
        found = UNSIGNED.get(kind, found)
    if kind == "decimal" and precision is not None and scale is not None and scale <= precision <= 38:
        found = DecimalType(precision, scale)
    query = QUERIES.get(kind, "{}" if found is not None else AS_TEXT)
    return TableColumn(name, declared, found or StringType(), bool(is_nullable), found is None, query)


def literal_of_time(moment: datetime, _: object = None) -> str:
    """Return a time as SQL; in UTC if it has a zone."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return f"'{moment.isoformat(sep=' ')}'"


def time_of(value: Any, *, is_date: bool) -> Any:
    """Return a time.

    PyMySQL returns text for a time that Python cannot represent; it becomes a number, or null if the month or day is
    zero.
    """
    if not isinstance(value, str):
        return value
    month, day = value[5:7], value[8:10]
    return None if "00" in (month, day) else number_of(value, is_date)
