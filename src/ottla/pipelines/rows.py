"""The rows of a pipeline: the value's fields are columns, and what else a record has are columns beside them.

`_key`, `_topic`, `_partition`, `_offset`, `_timestamp`, `_headers` and `_tombstone`, each where the source has it and until a
step leaves it out. A value that is no record is the one column `value`.
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
"""Where errors are tolerated: what is wrong with a row, and the record that it was."""
OFFERED, KEPT = "rows that were offered to a table", "rows that a table takes"
"""The names of two counts of Spark's; the difference was put aside."""
BEFORE, HOLDS = "_before", "_holds"
"""While a step with a predicate is at work: the row as it was, and whether it is touched."""
BESIDE = (KEY, TOPIC, PARTITION, OFFSET, TIMESTAMP, HEADERS, TOMBSTONE, FAILED, RECORD, BEFORE, HOLDS)
WHOLE = "value"
HEADER = "array<struct<key: string, value: binary>>"

Part = Literal["key", "value"]
Fields = dict[str, Column]


TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""How times are written: with all that a column of Spark's has, where its own formats leave out microseconds."""


def in_json(one: Column, *, with_nulls: bool = True) -> Column:
    """A column of parts as text; with nulls a reader is told of fields that have no value."""
    return F.to_json(one, TIMES | {"ignoreNullFields": str(not with_nulls).lower()})


def column(name: str) -> Column:
    """The column of this name, whatever is in the name."""
    return F.col("`" + name.replace("`", "``") + "`")


def values(frame: DataFrame) -> list[str]:
    """The names of the value's columns."""
    return [name for name in frame.columns if name not in BESIDE]


def beside(frame: DataFrame) -> list[str]:
    """The names of the others."""
    return [name for name in frame.columns if name in BESIDE]


def is_whole(frame: DataFrame) -> bool:
    """Whether the value is no record."""
    return values(frame) == [WHOLE]


def types_of(frame: DataFrame, part: Part) -> dict[str, DataType]:
    """The fields of the key or the value, with their types."""
    if part == "value":
        return {name: frame.schema[name].dataType for name in values(frame)}
    kind = frame.schema[needed(frame, KEY)].dataType
    if not isinstance(kind, StructType):
        raise ConfigError(
            f"the key is no record, it is {kind.simpleString()}; give the source keyFormat and keySchema, or make it one of "
            "fields of the value with ValueToKey"
        )
    return {field.name: field.dataType for field in kind.fields}


def field(part: Part, name: str) -> Column:
    """A field of the key or the value."""
    return column(name) if part == "value" else column(KEY)[name]


def fields_of(frame: DataFrame, part: Part) -> Fields:
    """All fields of the key or the value."""
    return {name: field(part, name) for name in types_of(frame, part)}


def with_fields(frame: DataFrame, part: Part, fields: Mapping[str, Column]) -> DataFrame:
    """The rows with these fields instead."""
    if not fields:
        raise ConfigError(f"no field of the {part} would be left; leave one")
    named = [one.alias(name) for name, one in fields.items()]
    if part == "value":
        return frame.select(*named, *beside(frame))
    return frame.withColumn(KEY, F.when(column(KEY).isNotNull(), F.struct(*named)))


def with_whole(frame: DataFrame, part: Part, whole: Column, kind: DataType) -> DataFrame:
    """The rows whose key or value is this instead; a record is taken apart."""
    if part == "key":
        return frame.withColumn(KEY, whole)
    if isinstance(kind, StructType):
        return with_fields(frame, part, {each.name: whole[each.name] for each in kind.fields})
    return with_fields(frame, part, {WHOLE: whole})


def whole_of(frame: DataFrame, part: Part) -> tuple[Column, DataType]:
    """The key or the value as one."""
    if part == "key":
        return column(KEY), frame.schema[needed(frame, KEY)].dataType
    if is_whole(frame):
        return column(WHOLE), frame.schema[WHOLE].dataType
    names = values(frame)
    return F.struct(*map(column, names)), StructType([frame.schema[name] for name in names])


def known(names: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """The names that are wanted; ConfigError where one is not there."""
    there = list(names)
    for name in wanted:
        if name not in there:
            told = unknown("field", name, there)
            raise ConfigError(told if "did you mean" in told else f"{told}; the fields are {', '.join(there)}")
    return list(wanted)


def failed(stage: str, reason: Column) -> Column:
    """What is wrong with a row, where `reason` is not null."""
    return F.when(reason.isNotNull(), F.struct(F.lit(stage).alias("stage"), reason.alias("reason")))


def with_failed(frame: DataFrame, new: Column) -> DataFrame:
    """The rows with what is wrong with them; what went wrong first counts."""
    return frame.withColumn(FAILED, F.coalesce(column(FAILED), new) if FAILED in frame.columns else new)


def without_failed(frame: DataFrame) -> DataFrame:
    """The rows with which nothing is wrong."""
    return frame.where(column(FAILED).isNull()).drop(FAILED) if FAILED in frame.columns else frame


REMEDIES = {
    HEADERS: "; set includeHeaders: true at a source that is a topic",
    TOPIC: "; only records of topics, or on their way to one, have it",
}


def needed(frame: DataFrame, name: str) -> str:
    """The name of a column beside the value, if it is there."""
    if name not in frame.columns:
        what = REMEDIES.get(name, "; only records of topics have it, and a query must select it to keep it")
        raise ConfigError(f"there is no column {name} here{what}")
    return name
