"""Rows of a DataFrame as rows for a topic: which columns mean what, and which row goes where.

Pure: Spark's schema and Arrow in, Arrow out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from ottla.errors import ConfigError, SerializationError
from ottla.spark.options import SinkOptions

TEXT_OR_BYTES: tuple[type[DataType], ...] = (StringType, BinaryType)
KINDS: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "topic": ((StringType,), "string"),
    "key": (TEXT_OR_BYTES, "string or binary"),
    "value": (TEXT_OR_BYTES, "string or binary"),
    "partition": ((IntegerType,), "int"),
    "timestamp": ((TimestampType,), "timestamp"),
    "headers": ((ArrayType,), "array<struct<key: string, value: binary>>"),
}
"""The columns a sink understands, and what they may be. It leaves others alone, as the official connector does."""


@dataclass(frozen=True)
class SinkColumns:
    """Which of the columns the DataFrame has."""

    there: frozenset[str]

    @property
    def roles(self) -> dict[str, str]:
        """What `Producer.send_table` is told: each column's role is its name."""
        return {name: name for name in self.there if name != "topic"}


def sink_columns(schema: StructType, options: SinkOptions) -> SinkColumns:
    """The columns to write; ConfigError if one is missing or of a wrong type."""
    there = {field.name: field.dataType for field in schema.fields if field.name in KINDS}
    if "value" not in there:
        raise ConfigError(f"there is no column 'value' to write, only {', '.join(schema.names)}; name one so")
    if "topic" not in there and options.topic is None:
        raise ConfigError("it is not said where to write; set the option topic, or add a column 'topic'")
    for name, kind in there.items():
        allowed, words = KINDS[name]
        if not isinstance(kind, allowed) or (isinstance(kind, ArrayType) and not is_header(kind.elementType)):
            raise ConfigError(f"column {name!r} is {kind.simpleString()}, but must be {words}; cast it")
    return SinkColumns(frozenset(there) - (set() if options.include_headers else {"headers"}))


def is_header(kind: DataType) -> bool:
    """Whether an array of `kind` can be headers."""
    return isinstance(kind, StructType) and [(f.name, type(f.dataType)) for f in kind.fields] == [
        ("key", StringType),
        ("value", BinaryType),
    ]


def by_topic(batch: pa.RecordBatch, columns: SinkColumns, topic: str | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows for each topic, in their order, without columns that are not written."""
    rows = written_columns(batch, columns)
    if topic is not None:
        yield topic, rows
        return
    topics = batch.column("topic")
    if topics.null_count:
        row = pc.index(pc.is_null(topics), True).as_py()
        raise SerializationError(f"a row has no topic (row {row} of its batch); fill column 'topic', or set the option")
    found = [str(name) for name in pc.unique(topics).to_pylist()]
    for name in found:
        yield name, rows if len(found) == 1 else rows.filter(pc.equal(topics, pa.scalar(name)))


def written_columns(batch: pa.RecordBatch, columns: SinkColumns) -> pa.RecordBatch:
    """The columns that make a record."""
    return batch.select([name for name in batch.schema.names if name in columns.there and name != "topic"])
