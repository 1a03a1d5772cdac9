"""Encode Arrow columns as Avro: which node writes a column with a type of the schema.

The nodes (`avro_column_writer`) write the same bytes as the writer of dicts does for the values as Python objects. A
column whose type they do not know, such as text for a date, is written by the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.records.arrow import view_of
from ottla.schemas import avro_column_writer as nodes
from ottla.schemas.avro_columns import encode_default, is_decimal
from ottla.schemas.avro_schema import AvroSchema, full_type, logical_writer
from ottla.schemas.wire import encode_zigzag

with extra("arrow"):
    import pyarrow as pa

LIMIT_BYTES = 64 * 1024 * 1024
"""The size at which an encoded column ends and the next one begins."""
PIECE_ROWS = 10_000
"""The number of rows that are Python objects at a time, if the writer of dicts writes them."""
UNITS: Mapping[str, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
MOMENTS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("int", "time-millis"): ("time", "ms"),
    ("long", "time-micros"): ("time", "us"),
    ("long", "timestamp-millis"): ("instant", "ms"),
    ("long", "timestamp-micros"): ("instant", "us"),
    ("long", "timestamp-nanos"): ("instant", "ns"),
    ("long", "local-timestamp-millis"): ("local", "ms"),
    ("long", "local-timestamp-micros"): ("local", "us"),
    ("long", "local-timestamp-nanos"): ("local", "ns"),
}
"""The kind and the unit of logical types that are numbers of a unit."""
PLAIN_LOGICAL = frozenset({"decimal", "uuid", "date", *(logical for _, logical in MOMENTS)})
EncodeRow = Callable[[Any, int], bytes]
"""Encodes the Python object of a row of the column, with its prefix. Raises SerializationError."""


class UnknownColumnError(Exception):
    """The nodes do not know how to write a column as a type."""


class AvroColumnEncoder:
    """Encodes columns with one schema, and `prefix` in front of each value."""

    def __init__(self, schema: AvroSchema, prefix: bytes, encode_row: EncodeRow, modules: Any = nodes) -> None:
        self._schema = schema
        self._prefix = prefix
        self._encode_row = encode_row
        self._nodes = modules

    def encode(self, column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
        """Return the encoded values, null for null."""
        chunks: list[pa.Array[Any]] = []
        first = 0
        for chunk in column.chunks:
            chunks += self._encode_chunk(chunk, first)
            first += len(chunk)
        return pa.chunked_array(chunks, pa.binary())

    def _encode_chunk(self, chunk: pa.Array[Any], first: int) -> list[pa.Array[Any]]:
        if chunk.null_count == len(chunk):
            return [pa.nulls(len(chunk), pa.binary())]
        try:
            if self._schema.is_plain_bytes:  # has no length, as the serializer writes it
                raise UnknownColumnError
            node = ColumnNodes(self._schema.named, self._nodes).make_node(chunk, self._schema.root)
        except (UnknownColumnError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return encode_chunk_objects(chunk, first, self._encode_row)
        arrays: list[pa.Array[Any]] = []
        row = 0
        while row < len(chunk):
            row = self._encode_piece(node, chunk, row, first, arrays)
        return arrays

    def _encode_piece(
        self, node: Any, chunk: pa.Array[Any], start: int, first: int, arrays: list[pa.Array[Any]]
    ) -> int:
        """Add an array of the rows from `start` on, and return the row behind its last one."""

        def encode_row(row: int) -> bytes:
            scalar: Any = chunk[row]
            return self._encode_row(scalar.as_py(maps_as_pydicts="strict"), first + row)

        bounds = bytearray(4 * (len(chunk) - start + 1))
        stop, data, size = self._nodes.write_rows(
            node, memoryview(bounds).cast("i"), self._prefix, start, len(chunk), LIMIT_BYTES, encode_row
        )
        piece = chunk.slice(start, stop - start)
        validity = piece.is_valid().buffers()[1] if piece.null_count else None
        buffers = [validity, pa.py_buffer(bounds), pa.py_buffer(data).slice(0, size)]
        arrays.append(pa.Array.from_buffers(pa.binary(), len(piece), buffers, piece.null_count))
        return int(stop)


def encode_objects(column: pa.ChunkedArray[Any], encode_row: EncodeRow) -> pa.ChunkedArray[Any]:
    """Encode a column as Python objects, null as null."""
    arrays: list[pa.Array[Any]] = []
    first = 0
    for chunk in column.chunks:
        arrays += encode_chunk_objects(chunk, first, encode_row)
        first += len(chunk)
    return pa.chunked_array(arrays, pa.binary())


def encode_chunk_objects(chunk: pa.Array[Any], first: int, encode_row: EncodeRow) -> list[pa.Array[Any]]:
    """Encode a chunk, a piece at a time. Its first row has the number `first`."""
    arrays: list[pa.Array[Any]] = []
    for start in range(0, len(chunk), PIECE_ROWS):
        values = chunk.slice(start, PIECE_ROWS).to_pylist(maps_as_pydicts="strict")
        rows = [None if value is None else encode_row(value, first + start + row) for row, value in enumerate(values)]
        arrays.append(pa.array(rows, pa.binary()))
    return arrays


class ColumnNodes:
    """Makes the nodes for the columns of one chunk."""

    def __init__(self, named: Mapping[str, Any], modules: Any) -> None:
        self._named = named
        self._made = modules

    def make_node(self, column: Any, schema: Any) -> Any:
        """Return the node that writes a column with a type. Raises UnknownColumnError."""
        if len(column) == 0:
            return self._made.ConstantNode(b"")
        full = full_type(schema, self._named)
        if isinstance(full, list):
            return self._make_union(column, full)
        kind, logical = full["type"], full.get("logicalType")
        if logical not in PLAIN_LOGICAL and logical_writer(full) is not None:
            raise UnknownColumnError  # a conversion that the program added to fastavro
        if kind == "null" and pa.types.is_null(column.type):
            return self._made.ConstantNode(b"")
        if isinstance(column, pa.ExtensionArray) or pa.types.is_null(column.type):
            raise UnknownColumnError
        if isinstance(column, pa.DictionaryArray) and kind != "enum":
            column = column.dictionary_decode()
        makers: Mapping[str, Callable[[Any, Any], Any]] = {
            "record": self._make_record,
            "error": self._make_record,
            "array": self._make_list,
            "map": self._make_map,
            "enum": self._make_enum,
        }
        return makers.get(kind, self._make_scalar)(column, full)

    def _make_union(self, column: Any, branches: list[Any]) -> Any:
        """Return the node for a union of a type and null; other unions need the types of their values."""
        kinds = [full_type(branch, self._named)["type"] for branch in branches]
        others = [number for number, kind in enumerate(kinds) if kind != "null"]
        null_branch = kinds.index("null") if "null" in kinds else -1
        if null_branch >= 0 and pa.types.is_null(column.type):
            return self._made.ConstantNode(encode_zigzag(null_branch))
        if len(others) != 1:
            raise UnknownColumnError
        return self._made.OptionalNode(self.make_node(column, branches[others[0]]), null_branch, others[0])

    def _make_record(self, column: Any, full: Any) -> Any:
        if not pa.types.is_struct(column.type):
            raise UnknownColumnError
        names = [column.type.field(number).name for number in range(column.type.num_fields)]
        fields: list[Any] = []
        for one in full["fields"]:
            if names.count(one["name"]) == 1:
                fields.append(self.make_node(column.field(names.index(one["name"])), one["type"]))
            elif one["name"] not in names and "default" in one:
                fields.append(self._make_default(one))
            else:
                raise UnknownColumnError
        return self._made.RecordNode(*validity(column), fields)

    def _make_default(self, one: Any) -> Any:
        try:
            return self._made.ConstantNode(encode_default(one["type"], one["default"], self._named, one["name"]))
        except SerializationError:
            raise UnknownColumnError from None

    def _make_list(self, column: Any, full: Any) -> Any:
        lists = as_lists(column)
        bounds = bounds_of(lists)
        items = lists.values.slice(bounds[0], bounds[-1] - bounds[0])
        return self._made.ListNode(*validity(lists), bounds, self.make_node(items, full["items"]))

    def _make_map(self, column: Any, full: Any) -> Any:
        if not pa.types.is_map(column.type):
            raise UnknownColumnError
        bounds = bounds_of(column)
        keys, values = (part.slice(bounds[0], bounds[-1] - bounds[0]) for part in (column.keys, column.items))
        if isinstance(keys, pa.DictionaryArray):
            keys = keys.dictionary_decode()
        return self._made.MapNode(
            *validity(column), bounds, self._make_bytes(keys, pa.string(), -1), self.make_node(values, full["values"])
        )

    def _make_enum(self, column: Any, full: Any) -> Any:
        encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
        symbols = encoded.dictionary.to_pylist()
        numbers = {symbol: number for number, symbol in enumerate(full["symbols"])}
        mapping = pa.array([numbers.get(symbol, -1) for symbol in symbols], pa.int32())
        indices = encoded.indices.cast(pa.int32())
        return self._made.EnumNode(*validity(indices), fixed_view(indices, "i", 4), fixed_view(mapping, "i", 4))

    def _make_scalar(self, column: Any, full: Any) -> Any:
        kind, arrow, made = full["type"], column.type, self._made
        if is_decimal(full) and full.get("logicalType") == "decimal" and pa.types.is_decimal(arrow):
            return self._make_decimal(column, full)
        if kind in ("int", "long"):
            return self._make_number(column, kind, full.get("logicalType"))
        if kind == "boolean" and pa.types.is_boolean(arrow):
            return made.BooleanNode(*validity(column), view_of(column.buffers()[1]))
        if kind in ("float", "double") and (pa.types.is_floating(arrow) or pa.types.is_integer(arrow)):
            wide = column.cast(pa.float64(), safe=False)
            return made.FloatNode(*validity(wide), fixed_view(wide, "d", 8), kind == "double")
        if kind == "string" and is_text(arrow):
            return self._make_bytes(column, pa.string(), -1)
        if kind in ("bytes", "fixed") and is_binary(arrow):
            return self._make_bytes(column, pa.binary(), full["size"] if kind == "fixed" else -1)
        raise UnknownColumnError

    def _make_number(self, column: Any, kind: str, logical: str | None) -> Any:
        arrow, width = column.type, 32 if kind == "int" else 64
        factor = divisor = 1
        if (kind, logical) in MOMENTS and not pa.types.is_integer(arrow):
            wanted, unit = MOMENTS[kind, str(logical)]
            if moment_kind(arrow) != wanted:
                raise UnknownColumnError
            given, target = UNITS[arrow.unit], UNITS[unit]
            factor, divisor = max(1, target // given), max(1, given // target)
            numbers = column.cast(pa.int32() if arrow.bit_width == 32 else pa.int64())
        elif (kind, logical) == ("int", "date") and pa.types.is_date(arrow):
            numbers = column.cast(pa.date32()).cast(pa.int32())
        elif pa.types.is_integer(arrow):
            numbers = column
        else:
            raise UnknownColumnError
        numbers = numbers.cast(pa.int64())
        return self._made.NumberNode(*validity(numbers), fixed_view(numbers, "q", 8), width, factor, divisor)

    def _make_bytes(self, column: Any, kind: pa.DataType, size: int) -> Any:
        values = column.cast(kind)
        if len(values) == 0:
            return self._made.BytesNode(b"", 0, memoryview(bytes(4)).cast("i"), b"", size)
        return self._made.BytesNode(*validity(values), bounds_of(values), view_of(values.buffers()[2]), size)

    def _make_decimal(self, column: Any, full: Any) -> Any:
        precision, scale = full["precision"], full.get("scale", 0)
        wide = precision > 38
        decimals = column.cast(pa.decimal256(precision, scale) if wide else pa.decimal128(precision, scale))
        width = 32 if wide else 16
        size = full["size"] if full["type"] == "fixed" else -1
        return self._made.DecimalNode(*validity(decimals), fixed_view(decimals, "B", width), width, size)


def moment_kind(arrow: Any) -> str | None:
    """Return whether a type is a time of day, an instant or a local timestamp."""
    if pa.types.is_time(arrow):
        return "time"
    if pa.types.is_timestamp(arrow):
        return "local" if arrow.tz is None else "instant"
    return None


def is_text(arrow: Any) -> bool:
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def is_binary(arrow: Any) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(test(arrow) for test in tests)


def as_lists(column: Any) -> Any:
    """Return a column of any type of lists as lists with offsets."""
    arrow = column.type
    if pa.types.is_list(arrow):
        return column
    if pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return column.cast(pa.list_(arrow.value_type))
    raise UnknownColumnError


def validity(column: Any) -> tuple[Any, int]:
    """Return the validity bits of a column, empty without nulls, and the bit of the first row."""
    return (view_of(column.buffers()[0]) if column.null_count else b""), column.offset


def bounds_of(column: Any) -> memoryview:
    """Return the bounds of the values of strings, lists or maps; one more than there are values."""
    start = 4 * column.offset
    return view_of(column.buffers()[1])[start : start + 4 * (len(column) + 1)].cast("i")


def fixed_view(column: Any, form: Any, width: int) -> memoryview:
    """Return the values of a column of numbers of `width` bytes."""
    start = width * column.offset
    return view_of(column.buffers()[1])[start : start + width * len(column)].cast(form)
