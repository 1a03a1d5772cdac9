"""Convert columns to Arrow and back without copies of buffers; the only module here that needs pyarrow.

A record batch shares the memory of its columns, and rows share the memory of their table.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.model import TopicPartition
from ottla.records.binary_column import BinaryColumn
from ottla.records.columns import Columns, Rows
from ottla.records.header_columns import split_headers
from ottla.records.headers import encode_headers

with extra("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

Unit = Literal["s", "ms", "us", "ns"]
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
SHARED_BYTES = 512 * 1024
"""The maximum size of a constant column that is kept for the next chunk."""
BYTES = (
    pa.types.is_binary,
    pa.types.is_string,
    pa.types.is_large_binary,
    pa.types.is_large_string,
    pa.types.is_binary_view,
    pa.types.is_string_view,
    pa.types.is_fixed_size_binary,
    pa.types.is_null,
)
"""Types with bytes as values, in any layout."""


@lru_cache(maxsize=64)
def schema(with_headers: bool = False, unit: Unit = "ms", only: tuple[str, ...] | None = None) -> pa.Schema:
    """Return the columns of records, or some of them, named as in Spark's Kafka source."""
    fields: list[pa.Field[Any]] = [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp(unit, tz="UTC")),
        pa.field("timestamp_type", pa.int32()),
        pa.field("headers", HEADERS),
    ]
    if only is None:
        return pa.schema(fields if with_headers else fields[:-1])
    by_name = {field.name: field for field in fields}
    return pa.schema([by_name[name] for name in only])


SCHEMA = schema()


def to_record_batch(
    columns: Columns,
    topic: str,
    partition: int,
    with_headers: bool = False,
    unit: Unit = "ms",
    only: tuple[str, ...] | None = None,
) -> pa.RecordBatch:
    """Return the rows of one partition, or some of their columns; `headers` is null for a record without any."""
    count = columns.count
    make: dict[str, Callable[[], pa.Array[Any]]] = {
        "key": lambda: binary_array(columns.keys),
        "value": lambda: binary_array(columns.values),
        "topic": lambda: repeat_value(topic, pa.string(), count),
        "partition": lambda: repeat_value(partition, pa.int32(), count),
        "offset": lambda: pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(columns.offsets)]),
        "timestamp": lambda: timestamp_array(columns, unit),
        "timestamp_type": lambda: timestamp_types(columns),
        "headers": lambda: header_array(columns),
    }
    shape = schema(with_headers, unit, only)
    return pa.RecordBatch.from_arrays([make[name]() for name in shape.names], schema=shape)


def to_table(
    chunks: Iterable[tuple[TopicPartition, Columns]],
    with_headers: bool = False,
    unit: Unit = "ms",
    only: tuple[str, ...] | None = None,
) -> pa.Table:
    """Return the rows of several partitions, one chunk for each."""
    batches = [to_record_batch(columns, *tp, with_headers=with_headers, unit=unit, only=only) for tp, columns in chunks]
    return pa.Table.from_batches(batches, schema=schema(with_headers, unit, only))


def repeat_value(value: str | int, kind: pa.DataType, count: int) -> pa.Array[Any]:
    """Return `count` copies of a value, in shared memory if that is not large."""
    room = 1 << (count - 1).bit_length()
    if room * (len(value) + 4 if isinstance(value, str) else 4) > SHARED_BYTES:
        return share_value.__wrapped__(value, kind, count)
    return share_value(value, kind, room).slice(0, count)


@lru_cache(maxsize=32)
def share_value(value: str | int, kind: pa.DataType, count: int) -> pa.Array[Any]:
    """Return a cached array for equal values: the chunks of a partition share topic and partition number."""
    one: Any = pa.scalar(value, kind)
    array: pa.Array[Any] = pa.repeat(one, count)
    return array


def binary_array(column: BinaryColumn, kind: pa.DataType | None = None) -> pa.Array[Any]:
    """Return the column as an Arrow array in the same memory."""
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind or pa.binary(), column.count, buffers, column.null_count)


def timestamp_array(columns: Columns, unit: Unit) -> pa.Array[Any]:
    buffers = [None, pa.py_buffer(columns.timestamps)]
    moments = pa.Array.from_buffers(pa.timestamp("ms", tz="UTC"), columns.count, buffers)
    if unit == "ms":
        return moments
    try:
        return moments.cast(pa.timestamp(unit, tz="UTC"), safe=unit != "s")
    except pa.ArrowInvalid:
        worst = max(range(columns.count), key=lambda row: abs(columns.timestamps[row]))
        raise SerializationError(
            f"the record at offset {columns.offsets[worst]} has timestamp {columns.timestamps[worst]} ms, which "
            f"64 bits cannot hold in {unit}"
        ) from None


def timestamp_types(columns: Columns) -> pa.Array[Any]:
    """Return the number of each row's timestamp type."""
    if len({run.timestamp_type for run in columns.runs}) == 1:
        return repeat_value(int(columns.runs[0].timestamp_type), pa.int32(), columns.count)
    kinds = array("i")
    ends = [run.start for run in columns.runs[1:]] + [columns.count]
    for run, end in zip(columns.runs, ends, strict=bool(columns.runs)):
        kinds.extend(array("i", [run.timestamp_type]) * (end - run.start))
    return pa.Array.from_buffers(pa.int32(), columns.count, [None, pa.py_buffer(kinds)])


def header_array(columns: Columns) -> pa.Array[Any]:
    """Return each row's headers as a list of structs, null without any."""
    raw = columns.raw_headers
    if raw is None:
        raise ValueError("these columns were decoded without headers; decode them with_headers=True")
    if not len(raw.data):
        return pa.nulls(columns.count, HEADERS)
    split = split_headers(raw)
    fields: Any = HEADERS.value_type
    struct = pa.StructArray.from_arrays([text_array(split.keys), binary_array(split.values)], fields=list(fields))
    offsets: Any = pa.Array.from_buffers(pa.int32(), raw.count + 1, [None, pa.py_buffer(split.bounds)])
    encoded: Any = binary_array(raw)
    none = pc.equal(pc.binary_length(encoded), pa.scalar(0))
    array_of: Any = pa.ListArray.from_arrays
    lists: pa.Array[Any] = array_of(offsets, struct, type=HEADERS, mask=none)
    return lists


def text_array(column: BinaryColumn) -> pa.Array[Any]:
    """Return the column as strings; invalid UTF-8 becomes replacement characters, as in Java."""
    if bytes(column.data).isascii():
        return binary_array(column, pa.string())
    return pa.array([(column.get(row) or b"").decode("utf-8", "replace") for row in range(column.count)], pa.string())


def rows_of(
    table: pa.Table | pa.RecordBatch,
    *,
    key: str | None = None,
    value: str | None = "value",
    headers: str | None = None,
    timestamp: str | None = None,
    default_timestamp: int = -1,
) -> Iterator[Rows]:
    """Yield the rows of a table per chunk, for `encode_rows`; the arguments name its columns.

     Keys and values may be any string or binary type, also dictionary-encoded; timestamps any timestamp type, or
    integers in ms; headers a list of (key, value). `default_timestamp` is for rows without a timestamp.
    """
    for batch in table.to_batches() if isinstance(table, pa.Table) else [table]:
        chosen = {
            role: column_named(batch, name)
            for role, name in (("key", key), ("value", value), ("headers", headers), ("timestamp", timestamp))
            if name is not None
        }
        yield from rows_within(chosen, 0, batch.num_rows, default_timestamp)


def column_named(batch: pa.RecordBatch, name: str) -> pa.Array[Any]:
    """Return the column, which must exist exactly once."""
    found = batch.schema.get_all_field_indices(name)
    if len(found) != 1:
        count = f"{len(found)} columns" if found else "no column"
        raise SerializationError(f"the table has {count} named {name!r}; it has {', '.join(batch.schema.names)}")
    return batch.column(found[0])


def rows_within(chosen: dict[str, pa.Array[Any]], start: int, stop: int, default_timestamp: int) -> Iterator[Rows]:
    """Yield the rows from `start` to `stop`; in halves if one of their columns would exceed 2 GiB."""
    count = stop - start
    if not count:
        return
    parts = {role: column.slice(start, count) for role, column in chosen.items()}
    try:
        keys, values, raw_headers = (
            binary_column(parts[role], role) if role in parts else None for role in ("key", "value", "headers")
        )
    except (pa.ArrowInvalid, pa.ArrowCapacityError):
        if count == 1:
            raise
        middle = start + count // 2
        yield from rows_within(chosen, start, middle, default_timestamp)
        yield from rows_within(chosen, middle, stop, default_timestamp)
        return
    nothing = BinaryColumn.of_nulls(count) if keys is None or values is None else None
    moments = timestamps_of(parts.get("timestamp"), count, default_timestamp)
    yield Rows(moments, keys or nothing, values or nothing, raw_headers)  # type: ignore[arg-type]


def binary_column(values: pa.Array[Any], role: str) -> BinaryColumn:
    """Return an Arrow column as a BinaryColumn, in the same memory if the layout is equal."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if role == "headers":
        values = encoded_headers(values)
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not any(test(kind) for test in BYTES):
        raise SerializationError(f"the column for the {role} is {kind}; cast it to string or binary")
    if not (pa.types.is_binary(values.type) or pa.types.is_string(values.type)):
        values = values.cast(pa.binary())
    count, first = len(values), values.offset
    _, offsets, data = values.buffers()
    bounds = view_of(offsets).cast("i")[first : first + count + 1]
    validity = view_of(values.is_valid().buffers()[1]) if values.null_count else None
    return BinaryColumn(count, bounds, view_of(data), validity, values.null_count)


def view_of(buffer: pa.Buffer | None) -> memoryview:
    """Return the bytes of an Arrow buffer; none without a buffer."""
    return memoryview(b"" if buffer is None else buffer).cast("B")


def encoded_headers(lists: Any) -> pa.Array[Any]:
    """Return each row's headers, encoded."""
    try:
        pairs = [
            row and [(header["key"], header["value"]) for header in row] for row in lists.cast(HEADERS).to_pylist()
        ]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
        raise SerializationError(
            f"the column for the headers is {lists.type}; it must be {HEADERS}, without null in the list"
        ) from None
    return pa.array([encode_headers(row) if row else b"" for row in pairs], pa.binary())


def timestamps_of(values: pa.Array[Any] | None, count: int, default: int) -> memoryview:
    """Return milliseconds of any timestamp type; `default` for null."""
    if values is None:
        return memoryview(array("q", [default]) * count)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("ms", values.type.tz), safe=False)
    elif not pa.types.is_integer(values.type):
        raise SerializationError(f"the column for the timestamp is {values.type}; cast it to a timestamp, or to ms")
    filled: Any = values.cast(pa.int64()).fill_null(default)
    earliest: Any = pc.min(filled)
    if count and earliest.as_py() < -1:
        row = pc.index(filled, earliest).as_py()
        raise ValueError(f"row {row} has timestamp {earliest} ms, before 1970; Kafka has none below 0")
    return view_of(filled.buffers()[1]).cast("q")[filled.offset : filled.offset + count]
