"""Rows of a DataFrame as rows for a topic: which columns mean what, and what they weigh.

Pure: Spark's schema and Arrow in, Arrow out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

from ottla.errors import ConfigError
from ottla.spark.exactly_once.weight import Weight
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

WEIGHED = ("topic", "key", "value")


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
    left = {name for name, asked in wishes(options).items() if not asked}
    there = {field.name: field.dataType for field in schema.fields if field.name in KINDS and field.name not in left}
    if options.include_timestamp and "timestamp" not in there:
        raise ConfigError(
            f"includeTimestamp is true, and there is no column 'timestamp', only {', '.join(schema.names)}"
        )
    if "value" not in there:
        raise ConfigError(f"there is no column 'value' to write, only {', '.join(schema.names)}; name one so")
    if "topic" not in there and options.topic is None:
        raise ConfigError("it is not said where to write; set the option topic, or add a column 'topic'")
    for name, kind in there.items():
        allowed, words = KINDS[name]
        if not isinstance(kind, allowed) or (isinstance(kind, ArrayType) and not is_header(kind.elementType)):
            raise ConfigError(f"column {name!r} is {kind.simpleString()}, but must be {words}; cast it")
    return SinkColumns(frozenset(there))


def wishes(options: SinkOptions) -> dict[str, bool]:
    """The columns that an option has written or left alone."""
    return {"headers": options.include_headers, "timestamp": options.include_timestamp}


def is_header(kind: DataType) -> bool:
    """Whether an array of `kind` can be headers."""
    return isinstance(kind, StructType) and [(f.name, type(f.dataType)) for f in kind.fields] == [
        ("key", StringType),
        ("value", BinaryType),
    ]


def weigh(batch: pa.RecordBatch, columns: SinkColumns) -> Weight:
    """What the rows of an Arrow batch weigh: their keys, values and topics."""
    total = Weight(batch.num_rows)
    for name in batch.schema.names:
        if name in columns.there and name in WEIGHED:
            total += weight_of(batch.column(name))
    return total


def weight_of(column: Any) -> Weight:
    """The bytes of a column of strings or binaries."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        column = column.cast(pa.large_binary())
    _, offsets, data = column.buffers()
    if offsets is None or data is None:
        return Weight()
    bounds = pa.Array.from_buffers(pa.int64(), len(column) + 1, [None, offsets], offset=column.offset)
    first, last = bounds[0].as_py(), bounds[-1].as_py()
    numbers = pa.Array.from_buffers(pa.uint8(), last - first, [None, data.slice(first, last - first)])
    return Weight(0, last - first, pc.sum(numbers).as_py() or 0)
