"""Converts rows of a DataFrame to rows for a topic: the roles of columns, and the weight of rows.

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
from ottla.spark.sink.registered_values import Encoding

TEXT_OR_BYTES: tuple[type[DataType], ...] = (StringType, BinaryType)
KINDS: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "topic": ((StringType,), "string"),
    "key": (TEXT_OR_BYTES, "string or binary"),
    "value": (TEXT_OR_BYTES, "string or binary"),
    "partition": ((IntegerType,), "int"),
    "timestamp": ((TimestampType,), "timestamp"),
    "headers": ((ArrayType,), "array<struct<key: string, value: binary>>"),
}
"""The columns that a sink uses, with their types. Other columns are ignored, as in the official connector."""

WEIGHED = ("topic", "key", "value")


@dataclass(frozen=True)
class SinkColumns:
    """The columns of the DataFrame that the sink uses."""

    there: frozenset[str]
    encodings: tuple[Encoding, ...] = ()
    """How keys and values are encoded; those without an encoding are written unchanged."""

    @property
    def roles(self) -> dict[str, str]:
        """The roles for `Producer.send_table`: each column's role is its name."""
        return {name: name for name in self.there if name != "topic"}


def sink_columns(schema: StructType, options: SinkOptions) -> SinkColumns:
    """Return the columns to write; ConfigError if one is missing or has a wrong type."""
    left = {name for name, is_enabled in optional_columns(options).items() if not is_enabled}
    there = {field.name: field.dataType for field in schema.fields if field.name in KINDS and field.name not in left}
    if options.include_timestamp and "timestamp" not in there:
        raise ConfigError(
            f"includeTimestamp is true, and there is no column 'timestamp', only {', '.join(schema.names)}"
        )
    if "value" not in there:
        raise ConfigError(f"there is no column 'value' to write, only {', '.join(schema.names)}; rename one to value")
    if "topic" not in there and options.topic is None:
        raise ConfigError("there is no topic to write to; set the option topic, or add a column 'topic'")
    for name, kind in there.items():
        if name in ("key", "value") and getattr(options, f"{name}_format") != "raw":
            continue
        allowed, words = KINDS[name]
        if not isinstance(kind, allowed) or (isinstance(kind, ArrayType) and not is_header(kind.elementType)):
            raise ConfigError(f"column {name!r} is {kind.simpleString()}, but must be {words}; cast it")
    return SinkColumns(frozenset(there))


def optional_columns(options: SinkOptions) -> dict[str, bool]:
    """Return the columns that options enable or disable."""
    return {"headers": options.include_headers, "timestamp": options.include_timestamp}


def is_header(kind: DataType) -> bool:
    """Return True if an array of `kind` can be headers."""
    return isinstance(kind, StructType) and [(f.name, type(f.dataType)) for f in kind.fields] == [
        ("key", StringType),
        ("value", BinaryType),
    ]


def weigh(batch: pa.RecordBatch, columns: SinkColumns) -> Weight:
    """Return the weight of an Arrow batch: its keys, values and topics."""
    total = Weight(batch.num_rows)
    for name in batch.schema.names:
        if name in columns.there and name in WEIGHED:
            total += weight_of(batch.column(name))
    return total


def weight_of(column: Any) -> Weight:
    """Return the weight of a column of strings or binaries."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        column = column.cast(pa.large_binary())
    _, offsets, data = column.buffers()
    if offsets is None or data is None:
        return Weight()
    bounds = pa.Array.from_buffers(pa.int64(), len(column) + 1, [None, offsets], offset=column.offset)
    first, last = bounds[0].as_py(), bounds[-1].as_py()
    numbers = pa.Array.from_buffers(pa.uint8(), last - first, [None, data.slice(first, last - first)])
    return Weight(0, last - first, pc.sum(numbers).as_py() or 0)
