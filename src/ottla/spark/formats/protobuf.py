"""Protocol Buffers messages, one in each record, of a type in a descriptor set (`protoc --include_imports -o`).

The types are those of Spark's `from_protobuf` with its option `upcast.unsigned.ints`. As there, a field that is not set
is null if the message shows that (a scalar of proto3 without `optional` and with its zero value counts as not set).
Requires `protobuf` (the extra `schemas`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ottla.config import unknown
from ottla.errors import ConfigError
from ottla.spark.formats.format import Decoded
from ottla.spark.formats.registry_head import FIRST_MESSAGE, explain_registry_head

# The numbers of FieldDescriptorProto.Type.
DOUBLE, FLOAT, INT64, UINT64, INT32, FIXED64, FIXED32, BOOL, STRING, GROUP, MESSAGE, BYTES, UINT32, ENUM = range(1, 15)
SFIXED32, SFIXED64, SINT32, SINT64 = range(15, 19)
SCALARS: dict[int, Any] = {
    **dict.fromkeys((INT32, SINT32, SFIXED32), pa.int32()),
    **dict.fromkeys((INT64, SINT64, SFIXED64, UINT32, FIXED32), pa.int64()),
    **dict.fromkeys((UINT64, FIXED64), pa.decimal128(20, 0)),
    DOUBLE: pa.float64(),
    FLOAT: pa.float32(),
    BOOL: pa.bool_(),
    STRING: pa.string(),
    BYTES: pa.binary(),
    ENUM: pa.string(),
}
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
Getter = Callable[[Any], Any]


class DescriptorsError(ConfigError):
    """The bytes are not a descriptor set."""


class Protobuf:
    """Decodes messages of the type `name` in a descriptor set."""

    def __init__(self, descriptors: bytes, name: str) -> None:
        self.message = message_class(descriptors, name)
        self.kind = message_type(self.message.DESCRIPTOR, ())
        self.value = message_getter(self.message.DESCRIPTOR)

    def decode(self, column: pa.Array[Any]) -> Decoded:
        from google.protobuf.message import DecodeError

        errors: dict[int, str] = {}
        rows: list[Any] = []
        for row, data in enumerate(column.to_pylist()):
            value = None
            if data is not None:
                try:
                    value = self.value(self.message.FromString(data))
                except (DecodeError, ValueError, OverflowError) as error:
                    text = f"not a message {self.message.DESCRIPTOR.full_name}: {error}"
                    errors[row] = text + explain_registry_head(data, self.message.FromString, FIRST_MESSAGE)
            rows.append(value)
        return Decoded(pa.array(rows, self.kind), errors)


def message_class(descriptors: bytes, name: str) -> Any:
    """Return the class of a message; ConfigError if there is none of that name."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise ConfigError("the format protobuf needs protobuf: pip install 'ottla[schemas]'") from None
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError:
        there = names(files)
        close = unknown("message", name, there).partition(";")[2]
        text = f"the descriptor set has no message {name!r}; its messages are: {', '.join(there) or 'none'}"
        raise ConfigError(f"{text};{close}" if close else text) from None
    except Exception as error:
        raise DescriptorsError(
            f"the descriptor set cannot be read: {error}; make it with `protoc --include_imports -o file.desc`"
        ) from None


def names(files: Any) -> list[str]:
    """Return the messages of a descriptor set."""
    return [".".join(filter(None, (file.package, one.name))) for file in files.file for one in file.message_type]


def message_type(descriptor: Any, outer: tuple[str, ...]) -> Any:
    if descriptor.full_name in outer:
        raise ConfigError(f"the message {descriptor.full_name} cannot be a column: it contains itself")
    if descriptor.full_name == TIMESTAMP:
        return pa.timestamp("us", "UTC")
    if descriptor.full_name == DURATION:
        return pa.duration("us")
    inside = (*outer, descriptor.full_name)
    return pa.struct([pa.field(one.name, field_type(one, inside)) for one in descriptor.fields])


def field_type(field: Any, outer: tuple[str, ...]) -> Any:
    if is_map(field):
        parts = field.message_type.fields_by_name
        return pa.map_(one_type(parts["key"], outer), one_type(parts["value"], outer))
    return pa.list_(one_type(field, outer)) if is_repeated(field) else one_type(field, outer)


def one_type(field: Any, outer: tuple[str, ...]) -> Any:
    return message_type(field.message_type, outer) if field.message_type is not None else SCALARS[field.type]


def message_getter(descriptor: Any) -> Getter:
    """Return the function that converts a message to a value for Arrow."""
    if descriptor.full_name == TIMESTAMP or descriptor.full_name == DURATION:
        return lambda message: message.seconds * 1_000_000 + message.nanos // 1000
    getters = [(one.name, field_getter(one)) for one in descriptor.fields]
    return lambda message: {name: get(message) for name, get in getters}


def field_getter(field: Any) -> Getter:
    """Return the function that reads a field's value from a message, None if it is not set."""
    name = field.name
    if is_map(field):
        key, item = (one_getter(field.message_type.fields_by_name[part]) for part in ("key", "value"))
        return lambda message: [(key(k), item(v)) for k, v in getattr(message, name).items()]
    get = one_getter(field)
    if is_repeated(field):
        return lambda message: [get(value) for value in getattr(message, name)]
    if field.has_presence:
        return lambda message: get(getattr(message, name)) if message.HasField(name) else None
    return lambda message: get(value) if (value := getattr(message, name)) else None


def one_getter(field: Any) -> Getter:
    if field.message_type is not None:
        return message_getter(field.message_type)
    if field.type == ENUM:
        values = field.enum_type.values_by_number
        return lambda number: values[number].name if number in values else str(number)
    return lambda value: value


def is_map(field: Any) -> bool:
    """Return True if the field is a map, which is encoded as a list of entries."""
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def is_repeated(field: Any) -> bool:
    """Return True if the field is a list; older releases of protobuf mark it by a label."""
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)
