"""Decode registered Avro values to Arrow columns: types, and how a writer's schema is resolved to the reader's.

The rules are those of Avro's specification ("Schema Resolution"), applied once for each pair of schemas: the result is a
tree of compiled actions (`avro_reader`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.schemas import avro_reader, column_reader
from ottla.schemas.arrow_columns import Column, ColumnDecoder, Forms
from ottla.schemas.avro_schema import AvroSchema, full_type
from ottla.schemas.wire import encode_zigzag

with extra("arrow"):
    import pyarrow as pa

FORMS = Forms(column_reader, avro_reader)
MAX_DEFAULT_BYTES = 1 << 20
FIXED_WIDTHS: Mapping[str, int] = {"float": 4, "double": 8}
PRIMITIVES: Mapping[str, Any] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
LOGICAL: Mapping[tuple[str, str], Any] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
"""Logical types with their own column type; others are read as their Avro types."""
PROMOTED: Mapping[str, frozenset[str]] = {
    "int": frozenset({"int", "long", "float", "double"}),
    "long": frozenset({"long", "float", "double"}),
    "float": frozenset({"float", "double"}),
    "string": frozenset({"string", "bytes"}),
    "bytes": frozenset({"bytes", "string"}),
}
"""The reader's types to which a writer's values can be converted."""


class AvroColumns(ColumnDecoder):
    """Decodes values of any writer's schema to one column of the reader's schema."""

    def __init__(self, reader: AvroSchema, forms: Forms = FORMS) -> None:
        self._reader = reader
        self._made = forms.columns
        self._forms = forms
        super().__init__(self._make_column(reader.root, ()), forms.columns)

    def add_writer(self, key: int | bytes, writer: AvroSchema) -> None:
        """Prepare to read values of a writer's schema."""
        resolving = Resolving(self._reader.named, writer.named, self._forms)
        self._add_action(key, resolving.resolve(writer.root, self._column, ""))

    def _make_column(self, schema: Any, within: tuple[str, ...]) -> Column:
        """Return the column of a type; `within` has the names of the enclosing records."""
        named, made = self._reader.named, self._made
        full = full_type(schema, named)
        if isinstance(full, list):
            return self._make_union(full, within)
        kind = full["type"]
        if kind in ("record", "error"):
            if full["name"] in within:
                raise SerializationError(
                    f"the record {full['name']} contains itself, which cannot be a column; give a reader's schema without it"
                )
            inside = (*within, full["name"])
            fields = [self._make_column(one["type"], inside) for one in full["fields"]]
            arrow: Any = pa.struct(
                [pa.field(one["name"], part.kind) for one, part in zip(full["fields"], fields, strict=True)]
            )
            return Column(full, arrow, made.StructBuilder([part.builder for part in fields]), fields)
        if kind == "array":
            item = self._make_column(full["items"], within)
            arrow = pa.list_(item.kind)
            return Column(full, arrow, made.ListBuilder(item.builder), [item])
        if kind == "map":
            key = Column({"type": "string"}, pa.string(), made.BytesBuilder(True))
            value = self._make_column(full["values"], within)
            entries = made.StructBuilder([key.builder, value.builder])
            arrow = pa.map_(pa.string(), value.kind)
            return Column(full, arrow, made.ListBuilder(entries), [key, value])
        return self._make_scalar(full)

    def _make_scalar(self, full: Any) -> Column:
        kind, made = full["type"], self._made
        logical = full.get("logicalType")
        if kind == "enum":
            arrow = pa.dictionary(pa.int32(), pa.string())
            return Column(full, arrow, made.IntBuilder(), symbols=full["symbols"])
        if is_decimal(full):
            precision, scale = full["precision"], full.get("scale", 0)
            if precision <= 38:
                return Column(full, pa.decimal128(precision, scale), made.FixedBuilder(16))
            return Column(full, pa.decimal256(precision, scale), made.FixedBuilder(32))
        if kind == "fixed":
            return Column(full, pa.binary(full["size"]), made.FixedBuilder(full["size"]))
        arrow = LOGICAL.get((kind, logical)) or PRIMITIVES[kind]
        builders: Mapping[str, Callable[[], Any]] = {
            "null": made.Builder,
            "boolean": made.BooleanBuilder,
            "int": made.IntBuilder,
            "long": made.LongBuilder,
            "float": lambda: made.FixedBuilder(4),
            "double": lambda: made.FixedBuilder(8),
            "bytes": lambda: made.BytesBuilder(False),
            "string": lambda: made.BytesBuilder(True),
        }
        return Column(full, arrow, builders[kind](), nullable=kind == "null")

    def _make_union(self, branches: list[Any], within: tuple[str, ...]) -> Column:
        kinds = [full_type(branch, self._reader.named) for branch in branches]
        others = [one for one in kinds if one["type"] != "null"]
        if len(others) <= 1:
            column = self._make_column(others[0] if others else kinds[0], within)
            column.nullable = len(kinds) > len(others)
            return column
        parts = [self._make_column(one, within) for one in kinds]
        names = [one.get("name", one["type"]) for one in kinds]
        arrow = pa.dense_union([pa.field(name, part.kind) for name, part in zip(names, parts, strict=True)])
        builder = self._made.UnionBuilder([part.builder for part in parts])
        return Column(kinds, arrow, builder, parts, branches=kinds)


def is_decimal(full: Any) -> bool:
    """Return True for a decimal that Arrow can represent."""
    return bool(
        full.get("logicalType") == "decimal"
        and full["type"] in ("bytes", "fixed")
        and isinstance(full.get("precision"), int)
        and 0 < full["precision"] <= 76
        and 0 <= full.get("scale", 0) <= full["precision"]
        and (full["type"] == "bytes" or full["size"] <= (16 if full["precision"] <= 38 else 32))
    )


class Resolving:
    """Makes the actions for one writer's schema."""

    def __init__(self, named: Mapping[str, Any], writer_named: Mapping[str, Any], forms: Forms) -> None:
        self._named = named
        self._writer_named = writer_named
        self._forms = forms
        self._made = forms.actions
        self._skipped: dict[str, Any] = {}

    def resolve(self, writer: Any, column: Column, path: str) -> Any:
        """Return the action that reads a value of the writer's type to a column."""
        made = self._made
        written = full_type(writer, self._writer_named)
        if isinstance(written, list):
            return made.BranchAction([self.resolve(branch, column, path) for branch in written])
        if column.branches:
            return self._resolve_to_union(written, column, path)
        if written["type"] == "null" and column.nullable:
            return made.NullAction(column.builder)
        return self._resolve_plain(written, column, path)

    def _resolve_to_union(self, written: Any, column: Column, path: str) -> Any:
        chosen = choose_branch(written, column.branches)
        if chosen is None:
            return self._mismatch(written, column, path)
        part = column.parts[chosen]
        if written["type"] == "null":
            return self._made.TaggedAction(column.builder, chosen, self._made.NullAction(part.builder))
        return self._made.TaggedAction(column.builder, chosen, self._resolve_plain(written, part, path))

    def _resolve_plain(self, written: Any, column: Column, path: str) -> Any:
        """Return the action for types without a union on either side."""
        made, wanted = self._made, column.schema
        kind, target = written["type"], wanted["type"]
        if kind in ("record", "error") and target in ("record", "error"):
            return self._resolve_record(written, column, path)
        if kind == target == "array":
            return made.ListAction(column.builder, self.resolve(written["items"], column.parts[0], path + "[]"))
        if kind == target == "map":
            key, value = column.parts
            entry = [made.BytesAction(key.builder), self.resolve(written["values"], value, path + "{}")]
            return made.ListAction(column.builder, made.RecordAction(column.builder.item, entry))
        if kind == target == "enum":
            return self._resolve_enum(written, column)
        if is_decimal(wanted) and kind in ("bytes", "fixed") and same_decimal(written, wanted):
            return made.DecimalAction(column.builder, written["size"] if kind == "fixed" else -1)
        if kind == target == "fixed" and written["size"] == wanted["size"] and not is_decimal(wanted):
            return made.FixedAction(column.builder)
        if target not in PROMOTED.get(kind, (kind,)) or kind not in PRIMITIVES or is_decimal(wanted):
            return self._mismatch(written, column, path)
        return self._resolve_primitive(kind, target, column)

    def _resolve_primitive(self, kind: str, target: str, column: Column) -> Any:
        made, builder = self._made, column.builder
        if target in FIXED_WIDTHS:
            return made.FixedAction(builder) if kind == target else made.PromotedAction(builder, kind == "float")
        actions: Mapping[str, Any] = {
            "null": made.NullAction,
            "boolean": made.BooleanAction,
            "int": made.IntAction,
            "long": made.LongAction,
            "bytes": made.BytesAction,
            "string": made.BytesAction,
        }
        return actions[target](builder)

    def _resolve_record(self, written: Any, column: Column, path: str) -> Any:
        by_name: dict[str, tuple[Any, Column]] = {}
        aliases: dict[str, str] = {}
        for one, part in zip(column.schema["fields"], column.parts, strict=True):
            by_name[one["name"]] = one, part
            aliases |= dict.fromkeys(one.get("aliases") or (), one["name"])
        actions: list[Any] = []
        filled: set[str] = set()
        for one in written["fields"]:
            name = one["name"] if one["name"] in by_name else aliases.get(one["name"], one["name"])
            if name in by_name and name not in filled:
                filled.add(name)
                actions.append(self.resolve(one["type"], by_name[name][1], f"{path}.{name}".lstrip(".")))
            else:
                actions.append(self._skip(one["type"]))
        for name, (one, part) in by_name.items():
            if name not in filled:
                actions.append(self._default(one, part, f"{path}.{name}".lstrip(".")))
        return self._made.RecordAction(column.builder, actions)

    def _default(self, one: Any, part: Column, path: str) -> Any:
        """Return the action for a field that the writer does not have."""
        if "default" not in one:
            return self._forms.columns.ErrorAction(
                f"its writer's schema has no field {path}, and the reader's schema has no default for it; add a default"
            )
        data = encode_default(one["type"], one["default"], self._named, path)
        if len(data) > MAX_DEFAULT_BYTES:
            raise SerializationError(f"the default of field {path} has more than {MAX_DEFAULT_BYTES} bytes")
        same = Resolving(self._named, self._named, self._forms)
        return self._made.DefaultAction(data, same.resolve(one["type"], part, path))

    def _resolve_enum(self, written: Any, column: Column) -> Any:
        symbols = column.schema["symbols"]
        default = symbols.index(column.schema["default"]) if column.schema.get("default") in symbols else -1
        numbers = {symbol: number for number, symbol in enumerate(symbols)}
        mapping = [numbers.get(symbol, default) for symbol in written["symbols"]]
        return self._made.EnumAction(column.builder, written["symbols"], mapping)

    def _mismatch(self, written: Any, column: Column, path: str) -> Any:
        wanted = column.schema
        name = wanted["type"] if isinstance(wanted, dict) else " or ".join(one["type"] for one in wanted)
        where = f"field {path}" if path else "the value"
        return self._forms.columns.ErrorAction(
            f"{where} was written as {written['type']}, and the reader's schema has {name}; name another version to read with"
        )

    def _skip(self, writer: Any) -> Any:
        """Return the action that reads a value and drops it."""
        made = self._made
        written = full_type(writer, self._writer_named)
        if isinstance(written, list):
            return made.BranchAction([self._skip(branch) for branch in written])
        kind = written["type"]
        if kind in ("record", "error"):
            if written["name"] not in self._skipped:
                actions: list[Any] = []
                self._skipped[written["name"]] = made.SequenceAction(actions)
                actions.extend(self._skip(one["type"]) for one in written["fields"])
            return self._skipped[written["name"]]
        if kind == "array":
            return made.SkipBlocks(self._skip(written["items"]))
        if kind == "map":
            return made.SkipBlocks(made.SequenceAction([made.SkipBytes(), self._skip(written["values"])]))
        if kind in ("int", "long", "enum"):
            return made.SkipNumber()
        if kind in ("bytes", "string"):
            return made.SkipBytes()
        sizes = {"null": 0, "boolean": 1, "float": 4, "double": 8}
        return made.SkipFixed(written["size"] if kind == "fixed" else sizes[kind])


def same_decimal(written: Any, wanted: Any) -> bool:
    """Return True if a written decimal has the reader's scale; a writer without the logical type is read as it is."""
    return bool(written.get("logicalType") != "decimal" or written.get("scale", 0) == wanted.get("scale", 0))


def choose_branch(written: Any, branches: list[Any]) -> int | None:
    """Return the number of the reader's type for a writer's type: the same one, else one that it can be converted to."""
    kind, name = written["type"], str(written.get("name", "")).rpartition(".")[2]
    same = [number for number, one in enumerate(branches) if one["type"] == kind]
    for number in same:
        if str(branches[number].get("name", "")).rpartition(".")[2] == name:
            return number
    if same and kind in ("record", "error"):
        return same[0]
    for number, one in enumerate(branches):
        if one["type"] in PROMOTED.get(kind, ()):
            return number
    return None


def encode_default(schema: Any, value: Any, named: Mapping[str, Any], path: str) -> bytes:
    """Return a default of a schema, which is JSON, as Avro. Raises SerializationError if it does not fit its type."""
    full = full_type(schema, named)
    if isinstance(full, list):
        for number, branch in enumerate(full):
            try:
                return encode_zigzag(number) + encode_default(branch, value, named, path)
            except SerializationError:
                continue
    else:
        try:
            return encode_plain_default(full, value, named, path)
        except (AttributeError, KeyError, TypeError, ValueError, struct.error):
            pass
    raise SerializationError(f"the default {value!r:.80} of field {path} does not fit its type; correct the schema")


def encode_plain_default(full: Any, value: Any, named: Mapping[str, Any], path: str) -> bytes:
    """Return a default of a type that is not a union."""
    kind = full["type"]
    if kind in ("record", "error"):
        given: Mapping[str, Any] = {
            **{one["name"]: one["default"] for one in full["fields"] if "default" in one},
            **value,
        }
        return b"".join(encode_default(one["type"], given[one["name"]], named, path) for one in full["fields"])
    if kind == "array":
        items = [encode_default(full["items"], item, named, path) for item in checked(value, list)]
        return (encode_zigzag(len(items)) if items else b"") + b"".join(items) + b"\0"
    if kind == "map":
        pairs = [
            encode_text(key) + encode_default(full["values"], item, named, path)
            for key, item in checked(value, dict).items()
        ]
        return (encode_zigzag(len(pairs)) if pairs else b"") + b"".join(pairs) + b"\0"
    if kind == "enum":
        return encode_zigzag(full["symbols"].index(value))
    if kind in ("bytes", "fixed"):
        data: bytes = value.encode("latin-1")
        return (encode_zigzag(len(data)) if kind == "bytes" else b"") + data
    return DEFAULT_WRITERS[str(kind)](value)


def checked(value: Any, kind: type) -> Any:
    """Return the value. Raises TypeError if it has another type."""
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not a {kind.__name__}")
    return value


def encode_text(value: str) -> bytes:
    data = value.encode()
    return encode_zigzag(len(data)) + data


DEFAULT_WRITERS: Mapping[str, Callable[[Any], bytes]] = {
    "null": lambda value: b"" if value is None else checked(value, type(None)),
    "boolean": lambda value: b"\1" if checked(value, bool) else b"\0",
    "int": lambda value: encode_zigzag(checked(value, int)),
    "long": lambda value: encode_zigzag(checked(value, int)),
    "float": lambda value: struct.pack("<f", value),
    "double": lambda value: struct.pack("<d", value),
    "string": encode_text,
}
