"""The rows of a pipeline: the fields of the value are columns, and the other parts of a record are metadata columns.

The metadata columns are `_key`, `_topic`, `_partition`, `_offset`, `_timestamp`, `_headers` and `_tombstone`. Each
exists if the source has it and until a transform drops it. A value that is not a record is the single column `value`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from ottla.config import unknown
from ottla.errors import ConfigError

KEY, TOPIC, PARTITION, OFFSET = "_key", "_topic", "_partition", "_offset"
TIMESTAMP, HEADERS, TOMBSTONE = "_timestamp", "_headers", "_tombstone"
FAILED, RECORD = "_failed", "_record"
"""With tolerated errors: the error of a row, and the original record."""
OFFERED, KEPT = "rows that were offered to a table", "rows that a table takes"
"""The names of two counts observed by Spark; their difference is the number of rows put aside."""
BEFORE, HOLDS = "_before", "_holds"
"""During a transform with a predicate: the row before it, and whether the predicate holds."""
METADATA_COLUMNS = (KEY, TOPIC, PARTITION, OFFSET, TIMESTAMP, HEADERS, TOMBSTONE, FAILED, RECORD, BEFORE, HOLDS)
WHOLE = "value"
HEADER = "array<struct<key: string, value: binary>>"

Part = Literal["key", "value"]
Fields = dict[str, Column]


TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Formats of times with all six digits of a Spark timestamp; Spark's default formats drop the microseconds."""


def in_json(one: Column, *, with_nulls: bool = True) -> Column:
    """Return a struct column as JSON text; with nulls, fields without a value are written too."""
    return F.to_json(one, TIMES | {"ignoreNullFields": str(not with_nulls).lower()})


def column(name: str) -> Column:
    """Return the column of this name, with any characters in the name."""
    return F.col("`" + name.replace("`", "``") + "`")


def values(frame: DataFrame) -> list[str]:
    """Return the names of the value's columns."""
    return [name for name in frame.columns if name not in METADATA_COLUMNS]


def metadata_columns(frame: DataFrame) -> list[str]:
    """Return the names of the metadata columns."""
    return [name for name in frame.columns if name in METADATA_COLUMNS]


def is_whole(frame: DataFrame) -> bool:
    """Return True if the value is not a record."""
    return values(frame) == [WHOLE]


def types_of(frame: DataFrame, part: Part) -> dict[str, DataType]:
    """Return the fields of the key or the value with their types; ConfigError if the key is not a record."""
    if part == "value":
        return {name: frame.schema[name].dataType for name in values(frame)}
    kind = frame.schema[require_column(frame, KEY)].dataType
    if not isinstance(kind, StructType):
        raise ConfigError(
            f"the key is {kind.simpleString()}, not a record; give the source keyFormat and keySchema, or make it one of "
            "fields of the value with ValueToKey"
        )
    return {field.name: field.dataType for field in kind.fields}


def field(part: Part, name: str) -> Column:
    """Return a field of the key or the value."""
    return column(name) if part == "value" else column(KEY)[name]


def fields_of(frame: DataFrame, part: Part) -> Fields:
    """Return all fields of the key or the value."""
    return {name: field(part, name) for name in types_of(frame, part)}


def with_fields(frame: DataFrame, part: Part, fields: Mapping[str, Column]) -> DataFrame:
    """Return the rows with these fields in place of the key's or value's."""
    if not fields:
        raise ConfigError(f"no field of the {part} would be left; leave one")
    named = [one.alias(name) for name, one in fields.items()]
    if part == "value":
        return frame.select(*named, *metadata_columns(frame))
    return frame.withColumn(KEY, F.when(column(KEY).isNotNull(), F.struct(*named)))


def with_whole(frame: DataFrame, part: Part, whole: Column, kind: DataType) -> DataFrame:
    """Return the rows with another key or value; a struct becomes the fields of the value."""
    if part == "key":
        return frame.withColumn(KEY, whole)
    if isinstance(kind, StructType):
        return with_fields(frame, part, {each.name: whole[each.name] for each in kind.fields})
    return with_fields(frame, part, {WHOLE: whole})


def whole_of(frame: DataFrame, part: Part) -> tuple[Column, DataType]:
    """Return the key or the value as one column, with its type."""
    if part == "key":
        return column(KEY), frame.schema[require_column(frame, KEY)].dataType
    if is_whole(frame):
        return column(WHOLE), frame.schema[WHOLE].dataType
    names = values(frame)
    return F.struct(*map(column, names)), StructType([frame.schema[name] for name in names])


def checked_names(names: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """Return the wanted names; ConfigError if one does not exist."""
    there = list(names)
    for name in wanted:
        if name not in there:
            text = unknown("field", name, there)
            raise ConfigError(text if "did you mean" in text else f"{text}; the fields are {', '.join(there)}")
    return list(wanted)


def failed_row(stage: str, reason: Column) -> Column:
    """Return the error of a row, null where `reason` is null."""
    return F.when(reason.isNotNull(), F.struct(F.lit(stage).alias("stage"), reason.alias("reason")))


def with_failed(frame: DataFrame, new: Column) -> DataFrame:
    """Return the rows with this error, unless they have an earlier one."""
    return frame.withColumn(FAILED, F.coalesce(column(FAILED), new) if FAILED in frame.columns else new)


def without_failed(frame: DataFrame) -> DataFrame:
    """Return the rows without an error."""
    return frame.where(column(FAILED).isNull()).drop(FAILED) if FAILED in frame.columns else frame


REMEDIES = {
    HEADERS: "; set includeHeaders: true at a source that is a topic",
    TOPIC: "; only records of topics, or on their way to one, have it",
}


def require_column(frame: DataFrame, name: str) -> str:
    """Return the name of a metadata column; ConfigError if the rows do not have it."""
    if name not in frame.columns:
        what = REMEDIES.get(name, "; only records of topics have it, and a query must select it to keep it")
        raise ConfigError(f"there is no column {name} here{what}")
    return name
