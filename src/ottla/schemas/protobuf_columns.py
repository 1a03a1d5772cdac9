"""Decode registered Protobuf messages to Arrow columns: the types of a message.

A field that is not in a message is null if the message shows that (`optional`, messages, members of a oneof), else the
zero value of its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.schemas import column_reader, protobuf_reader
from ottla.schemas.arrow_columns import MAX_COLUMNS, Column, ColumnDecoder, Forms

with extra("arrow"):
    import pyarrow as pa
with extra("schemas"):
    from google.protobuf import json_format, message_factory
    from google.protobuf.message import DecodeError

FORMS = Forms(column_reader, protobuf_reader)
# The numbers of FieldDescriptorProto.Type.
DOUBLE, FLOAT, INT64, UINT64, INT32, FIXED64, FIXED32, BOOL, STRING, GROUP, MESSAGE, BYTES, UINT32, ENUM = range(1, 15)
SFIXED32, SFIXED64, SINT32, SINT64 = range(15, 19)
VARINT_TYPES: Mapping[int, Any] = {
    INT32: pa.int32(),
    SINT32: pa.int32(),
    UINT32: pa.uint32(),
    INT64: pa.int64(),
    SINT64: pa.int64(),
    UINT64: pa.uint64(),
}
FIXED_TYPES: Mapping[int, Any] = {
    DOUBLE: pa.float64(),
    FLOAT: pa.float32(),
    FIXED64: pa.uint64(),
    SFIXED64: pa.int64(),
    FIXED32: pa.uint32(),
    SFIXED32: pa.int32(),
}
FIXED64_WIRE, BYTES_WIRE, FIXED32_WIRE = 1, 2, 5
KNOWN = "google.protobuf."
MOMENTS: Mapping[str, Any] = {KNOWN + "Timestamp": pa.timestamp("us", "UTC"), KNOWN + "Duration": pa.duration("us")}
TEXTS = frozenset({KNOWN + "Struct", KNOWN + "Value", KNOWN + "ListValue"})
"""Messages of any content, which become JSON text."""
WRAPPERS = frozenset(
    KNOWN + f"{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


class ProtobufColumns(ColumnDecoder):
    """Decodes messages to one column of the reader's message.

    `fills_zeros` is False to leave all fields null that are not in a message, and `unwraps` is False to keep wrappers
    such as Int32Value as structs; so are they in Spark.
    """

    has_indexes = True

    def __init__(self, message: Any, fills_zeros: bool = True, unwraps: bool = True, forms: Forms = FORMS) -> None:
        self._name = message.full_name
        types = MessageTypes(fills_zeros, unwraps, forms)
        column, action = types.make_struct(message, ())
        super().__init__(column, forms.columns)
        self._action = forms.actions.RootAction(action)

    def add_writer(self, key: int | bytes, name: str) -> None:
        """Prepare to read values of a writer's message, given by its full name."""
        if name == self._name:
            self._add_action(key, self._action)
        else:
            self.add_unreadable(
                key, f"it is a message {name}, and the column has {self._name}; read the values as bytes"
            )


class MessageTypes:
    """Makes the column and the action of each field."""

    def __init__(self, fills_zeros: bool, unwraps: bool, forms: Forms) -> None:
        self._fills_zeros = fills_zeros
        self._unwraps = unwraps
        self._made = forms.columns
        self._actions = forms.actions
        self._count = 0
        """The number of columns so far."""

    def make_struct(self, message: Any, within: tuple[str, ...], in_map: bool = False) -> tuple[Column, Any]:
        """Return column and action of a message with its fields; `within` has the enclosing messages."""
        inside = (*within, message.full_name)
        self._count += len(message.fields)
        if self._count > MAX_COLUMNS:
            raise SerializationError(
                f"the message {(within or inside)[0]} has more than {MAX_COLUMNS} columns, because many of its messages "
                "contain each other; read the values as bytes"
            )
        made = [self._make_field(field, inside, in_map) for field in message.fields]
        parts = [column for column, _ in made]
        builder = self._made.StructBuilder([part.builder for part in parts])
        arrow: Any = pa.struct(
            [pa.field(field.name, part.kind) for field, part in zip(message.fields, parts, strict=True)]
        )
        numbers = [field.number for field in message.fields]
        action = self._actions.MessageAction(builder, builder, numbers, [field for _, field in made])
        return Column(message.full_name, arrow, builder, parts), action

    def _make_field(self, field: Any, within: tuple[str, ...], in_map: bool) -> tuple[Column, Any]:
        """Return the column of a field, and the field."""
        is_entry = field.message_type is not None and field.message_type.GetOptions().map_entry
        if is_entry:
            column, action = self.make_struct(field.message_type, within, in_map=True)
            builder = self._made.ListBuilder(column.builder)
            key, value = column.parts
            made = Column(field.name, pa.map_(key.kind, value.kind), builder, [key, value])
            return made, self._actions.Field(action, column.builder, builder, False, True, -1)
        column, action = self._make_one(field, within)
        if is_repeated(field):
            builder = self._made.ListBuilder(column.builder)
            arrow: Any = pa.list_(column.kind)
            made = Column(field.name, arrow, builder, [column])
            return made, self._actions.Field(action, column.builder, builder, False, False, -1)
        fills = in_map or (self._fills_zeros and not field.has_presence)
        is_message = field.message_type is not None
        oneof = field.containing_oneof
        number = oneof.index if oneof is not None and len(oneof.fields) > 1 else -1
        return column, self._actions.Field(action, column.builder, None, fills, is_message, number)

    def _make_one(self, field: Any, within: tuple[str, ...]) -> tuple[Column, Any]:
        """Return column and action of one value of a field."""
        made, actions, kind = self._made, self._actions, field.type
        if kind == GROUP:
            raise SerializationError(
                f"the field {field.full_name} is a group, which cannot be a column; read the values as bytes"
            )
        if kind == MESSAGE:
            return self._make_message(field.message_type, within)
        if kind in VARINT_TYPES:
            arrow = VARINT_TYPES[kind]
            is_zigzag = kind in (SINT32, SINT64)
            builder = made.IntBuilder() if arrow.bit_width == 32 else made.LongBuilder()
            action = (actions.IntAction if arrow.bit_width == 32 else actions.LongAction)(builder, is_zigzag)
            return Column(kind, arrow, builder), action
        if kind in FIXED_TYPES:
            arrow = FIXED_TYPES[kind]
            builder = made.FixedBuilder(arrow.bit_width // 8)
            wire = FIXED32_WIRE if arrow.bit_width == 32 else FIXED64_WIRE
            return Column(kind, arrow, builder), actions.FixedAction(builder, wire)
        if kind == ENUM:
            builder = made.IntBuilder()
            symbols = {number: one.name for number, one in field.enum_type.values_by_number.items()}
            action = actions.EnumAction(builder, symbols)
            return Column(kind, pa.dictionary(pa.int32(), pa.string()), builder, symbols=action.symbols), action
        if kind == BOOL:
            builder = made.BooleanBuilder()
            return Column(kind, pa.bool_(), builder), actions.BooleanAction(builder, 0)
        builder = made.BytesBuilder(kind == STRING)
        return Column(kind, pa.string() if kind == STRING else pa.binary(), builder), actions.BytesAction(
            builder, BYTES_WIRE
        )

    def _make_message(self, message: Any, within: tuple[str, ...]) -> tuple[Column, Any]:
        name, made, actions = message.full_name, self._made, self._actions
        if name in MOMENTS:
            builder = made.LongBuilder()
            return Column(name, MOMENTS[name], builder), actions.MomentAction(builder, BYTES_WIRE)
        if name in TEXTS or name in within:
            builder = made.BytesBuilder(True)
            return Column(name, pa.string(), builder), actions.TextAction(builder, make_text_converter(message))
        if self._unwraps and name in WRAPPERS:
            (value,) = message.fields
            column, action = self._make_one(value, within)
            field = actions.Field(action, column.builder, None, True, False, -1)
            return column, actions.MessageAction(column.builder, None, [value.number], [field])
        return self.make_struct(message, within)


def make_text_converter(message: Any) -> Any:
    """Return a function that converts an encoded message to JSON text."""
    kind = message_factory.GetMessageClass(message)

    def convert(data: bytes) -> bytes:
        try:
            value = kind.FromString(data)
            text: str = json_format.MessageToJson(value, indent=None, preserving_proto_field_name=True)
            return text.encode()
        except (DecodeError, json_format.Error, ValueError, TypeError) as error:
            raise SerializationError(f"it is not a message {message.full_name}: {error}") from None

    return convert


def is_repeated(field: Any) -> bool:
    """Return True if the field is a list; older releases of protobuf mark it by a label."""
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)
