"""Converts rows of a topic to rows of the query: decodes keys and values, and reports, drops or rejects bad rows.

Runs in a task, batch by batch. The formats find the errors of rows; the mode decides how they are handled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.errors import OttlaError
from ottla.spark.formats.format import Decoded, Format
from ottla.spark.formats.text import Raw

ERROR, RAW = "_error", "_raw"
"""Columns that PERMISSIVE adds: the error of a row, and the original value of a row with an error."""
RAW_KEY = "_raw_key"
"""With `keepRaw`, the original key of every row."""
REMEDY = f"; set the option mode to PERMISSIVE to get such rows with a column {ERROR}, or to DROPMALFORMED to skip them"
"""The end of the error for a record that stops a query."""
CODED = ("key", "value")
ID_HEADERS = {"key": "__key_schema_id", "value": "__value_schema_id"}
"""The headers with which serializers of a schema registry write the id of a schema."""


class MalformedRecordError(OttlaError):
    """A record does not match keyFormat or valueFormat, and the mode is FAILFAST."""


@dataclass(frozen=True)
class Decoding:
    """The settings for decoding rows, sent to the tasks."""

    schema: pa.Schema
    """The columns that Spark expects."""
    key: Callable[[], Format] = Raw
    value: Callable[[], Format] = Raw
    mode: str = "PERMISSIVE"
    keep_raw: bool = False
    """True if every row has `RAW`."""
    reject_empty: bool = False
    """True if a key or value that is not null and is decoded as null is an error of its row."""
    registered: frozenset[str] = frozenset()
    """Which of key and value have schema ids, which may be in the headers."""


@dataclass
class RowDecoder:
    decoding: Decoding
    formats: Mapping[str, Format] = field(init=False)

    def __post_init__(self) -> None:
        self.formats = {"key": self.decoding.key(), "value": self.decoding.value()}

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that Spark expects; columns of the right type are not copied."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns["timestampType"] = columns.pop("timestamp_type")
        errors = self.decode_coded(columns)
        if errors and self.decoding.mode == "FAILFAST":
            raise MalformedRecordError(describe_error(batch, *min(errors.items())))
        if ERROR in self.decoding.schema.names:
            columns |= error_columns(errors, batch, self.decoding.keep_raw) | {RAW_KEY: batch.column("key")}
        fields = self.decoding.schema
        arrays = [
            columns[one.name] if columns[one.name].type.equals(one.type) else columns[one.name].cast(one.type)
            for one in fields
        ]
        rows = pa.RecordBatch.from_arrays(arrays, schema=fields)
        return drop_errors(rows, errors) if errors and self.decoding.mode == "DROPMALFORMED" else rows

    def decode_coded(self, columns: dict[str, pa.Array[Any]]) -> dict[int, str]:
        """Decode the key and the value in place; return the errors by row."""
        errors: dict[int, str] = {}
        for name in CODED:
            encoded = columns[name]
            if name in self.decoding.registered:
                encoded = prepend_header_ids(encoded, columns.get("headers"), ID_HEADERS[name])
            decoded = self.formats[name].decode(encoded)
            found = dict(decoded.errors)
            if self.decoding.reject_empty:
                found |= empty_rows(columns[name], decoded)
            columns[name] = decoded.values
            for row, error in found.items():
                errors[row] = f"{errors[row]}; {name}: {error}" if row in errors else f"{name}: {error}"
        return errors


def prepend_header_ids(column: Any, headers: Any, name: str) -> Any:
    """Return the values with the schema ids of their headers in front, where those in front of other values are."""
    if headers is None or headers.null_count == len(headers):
        return column
    pairs = headers.flatten()
    is_id: Any = pc.and_(pc.equal(pairs.field("key"), pa.scalar(name)), pairs.field("value").is_valid())
    if not pc.any(is_id).as_py():
        return column
    rows = pc.list_parent_indices(headers).filter(is_id)
    first = pc.index_in(pa.array(range(len(column)), rows.type), rows)
    ids = pairs.field("value").filter(is_id).take(first).fill_null(b"")
    joined: Any = pc.binary_join_element_wise(ids, column, pa.scalar(b""))
    return joined


def empty_rows(column: pa.Array[Any], decoded: Decoded) -> dict[int, str]:
    """Return an error for each row that was not null, became null, and has no other error."""
    if decoded.values.null_count == column.null_count:
        return {}
    rows: list[Any] = pc.indices_nonzero(pc.and_(column.is_valid(), decoded.values.is_null())).to_pylist()
    return {
        row: f"it has {len(column[row].as_py())} bytes and no content; only null is a tombstone, write null instead"
        for row in rows
        if row not in decoded.errors
    }


def error_columns(errors: Mapping[int, str], batch: pa.RecordBatch, keep_raw: bool) -> dict[str, pa.Array[Any]]:
    """Return the two columns for errors."""
    count, values = batch.num_rows, batch.column("value")
    found = pa.array([errors.get(row) for row in range(count)], pa.string()) if errors else pa.nulls(count, pa.string())
    if keep_raw:
        return {ERROR: found, RAW: values}
    if not errors:
        return {ERROR: found, RAW: pa.nulls(count, pa.binary())}
    return {
        ERROR: found,
        RAW: pa.array([values[row].as_py() if row in errors else None for row in range(count)], pa.binary()),
    }


def drop_errors(rows: pa.RecordBatch, errors: Mapping[int, str]) -> pa.RecordBatch:
    """Return the rows without errors."""
    return rows.filter(pa.array([row not in errors for row in range(rows.num_rows)]))


def describe_error(batch: pa.RecordBatch, row: int, error: str) -> str:
    """Return the error with the record's position, the cause and the remedy."""
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return f"the record at offset {offset} of {topic}-{partition} cannot be decoded: {error}{REMEDY}"
