"""Columns of registered values: the Arrow types of a reader's schema, and the loop that decodes values of all writers.

A format (`avro_columns`, `json_columns`, `protobuf_columns`) makes a column with its builders, and an action for each
writer's schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.extras import extra
from ottla.records.binary_column import BinaryColumn
from ottla.schemas import column_reader
from ottla.schemas.context import MessageField
from ottla.schemas.wire import HEADER_NAMES, ID_MAGIC, PREFIX

with extra("arrow"):
    import pyarrow as pa


MAX_COLUMNS = 10_000
"""The limit on the columns of one schema. Types that refer to each other are columns on each path between them."""


class Forms(NamedTuple):
    """The modules of the hot loops, for tests of their uncompiled form."""

    columns: Any
    actions: Any


@dataclass
class Column:
    """A column of the reader's schema."""

    schema: Any
    """The type in the schema; for Avro without null and without names."""
    kind: Any
    """The Arrow type."""
    builder: Any
    parts: Sequence[Column] = ()
    """The fields of a struct, the items of a list, keys and values of a map, the types of a union."""
    nullable: bool = False
    symbols: Sequence[str] = ()
    """The strings of an enum. Protobuf adds the numbers that are not in the schema."""
    branches: list[Any] = field(default_factory=list)
    """The Avro types of a union of several types; without names."""


class ColumnDecoder:
    """Decodes values of any writer's schema to one column of the reader's schema."""

    has_indexes = False
    """True if message indexes follow the schema id."""

    def __init__(self, column: Column, columns: Any = column_reader) -> None:
        self._column = column
        self._columns = columns
        self._actions: dict[bytes, Any] = {}

    @property
    def kind(self) -> pa.DataType:
        """The Arrow type of the column."""
        kind: pa.DataType = self._column.kind
        return kind

    def knows(self, key: bytes) -> bool:
        return key in self._actions

    def add_unreadable(self, key: int | bytes, reason: str) -> None:
        """Make each value of a writer's schema an error."""
        self._actions[key_of(key)] = self._columns.ErrorAction(reason)

    def _add_action(self, key: int | bytes, action: Any) -> None:
        self._actions[key_of(key)] = action

    def decode(
        self, values: BinaryColumn, headers: BinaryColumn | None = None, field: str = MessageField.VALUE
    ) -> tuple[pa.Array[Any], dict[int, str]]:
        """Return the decoded values, null for null, and the error of each row that cannot be read; such rows are null."""
        errors: dict[int, str] = {}
        ids = self._columns.IdReader(values, headers, HEADER_NAMES[field].encode(), self.has_indexes)
        self._columns.read_column(ids, self._column.builder, self._actions, errors)
        return finish_column(self._column), errors


def find_schema_keys(values: BinaryColumn, headers: BinaryColumn | None, field: str, has_indexes: bool) -> list[bytes]:
    """Return the keys of the schemas of all values, in order."""
    ids = column_reader.IdReader(values, headers, HEADER_NAMES[field].encode(), has_indexes)
    return sorted(column_reader.find_keys(ids))


def key_of(key: int | bytes) -> bytes:
    """Return the key of a schema id."""
    return PREFIX.pack(ID_MAGIC, key) if isinstance(key, int) else key


def finish_column(column: Column) -> pa.Array[Any]:
    """Return what was read as an Arrow array in the same memory."""
    builder, kind = column.builder, column.kind
    count, nulls = builder.count, builder.null_count
    if pa.types.is_null(kind):
        return pa.nulls(count)
    validity = None if builder.validity() is None else pa.py_buffer(builder.validity())
    if column.branches:
        parts = [finish_column(part) for part in column.parts]
        kinds = pa.Array.from_buffers(pa.int8(), count, [None, pa.py_buffer(builder.data)])
        rows = pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(builder.offsets)])
        names = [kind.field(number).name for number in range(len(parts))]
        union: pa.Array[Any] = pa.UnionArray.from_dense(kinds, rows, parts, names)  # type: ignore[arg-type]
        return union
    if pa.types.is_struct(kind):
        children = [finish_column(part) for part in column.parts]
        return pa.Array.from_buffers(kind, count, [validity], nulls, children=children)
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        buffers = [validity, pa.py_buffer(builder.offsets)]
        if pa.types.is_list(kind):
            return pa.Array.from_buffers(kind, count, buffers, nulls, children=[finish_column(column.parts[0])])
        entries = pa.struct([kind.key_field, kind.item_field])
        pairs = [finish_column(part) for part in column.parts]
        inner = pa.Array.from_buffers(entries, builder.item.count, [None], children=pairs)
        return pa.Array.from_buffers(kind, count, buffers, nulls, children=[inner])
    if pa.types.is_dictionary(kind):
        indices = pa.Array.from_buffers(pa.int32(), count, [validity, pa.py_buffer(builder.data)], nulls)
        symbols: Any = pa.array(column.symbols, pa.string())
        encoded: pa.Array[Any] = pa.DictionaryArray.from_arrays(indices, symbols)
        return encoded
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        data = pa.py_buffer(builder.data).slice(0, builder.size)
        return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(builder.offsets), data], nulls)
    return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(builder.data)], nulls)
