"""Write the rows of a column as Protobuf of a registered schema: the reverse of `protobuf_columns`, a message per row.

A struct becomes a message: its fields are found by their names in the schema, and null fields are not set.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.exchange import Exchange
from ottla.schemas.protobuf import PROTOBUF
from ottla.schemas.protobuf_columns import ENUM, KNOWN, TEXTS, WRAPPERS, is_repeated
from ottla.schemas.protobuf_schema import SERIALIZED, find_message, load_file
from ottla.schemas.serde import Encoder, Register
from ottla.schemas.values import Schema

with extra("schemas"):
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
    from google.protobuf.message import EncodeError

Fill = Callable[[Any, Any], None]
"""Sets the fields of a message from a value."""


class ProtobufRowEncoder:
    """Encodes rows as one message."""

    def __init__(self, message: Any) -> None:
        self._class = message_factory.GetMessageClass(message)
        self._fill = MessageFiller(message)

    def __call__(self, obj: Any, prefix: bytes) -> bytes:
        made = self._class()
        self._fill(made, obj)
        try:
            return prefix + bytes(made.SerializeToString())
        except (EncodeError, ValueError) as error:  # of a required field, for example
            raise SerializationError(f"{error}; change the value") from error


def to_text(message: Any) -> str:
    """Return a message with all files that it needs as text, for processes without a registry."""
    files = descriptor_pb2.FileDescriptorSet()
    for file in files_of(message.file, set()):
        files.file.add().ParseFromString(file.serialized_pb)
    return json.dumps({"files": b64encode(files.SerializeToString()).decode("ascii"), "message": message.full_name})


def files_of(file: Any, seen: set[str]) -> Iterator[Any]:
    """Yield a file after those that it imports."""
    if file.name in seen:
        return
    seen.add(file.name)
    for imported in file.dependencies:
        yield from files_of(imported, seen)
    yield file


def from_text(text: str) -> Any:
    """Return the message of a result of `to_text`."""
    content = json.loads(text)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(b64decode(content["files"])).file:
        pool.Add(file)
    return pool.FindMessageTypeByName(content["message"])


class ProtobufRowWriting:
    """The part of a serializer that writes the rows of a column, as the first message of the schema."""

    schema_type = PROTOBUF
    fetch_format: str | None = SERIALIZED

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema

    def record_name(self, obj: Any) -> str | None:
        return None

    def indexes(self, obj: Any) -> list[int] | None:
        return [0]

    def schema(self, obj: Any, calls: RegistryCalls, register: Register) -> Exchange[Schema | None]:
        yield from ()
        return self._schema

    def prepare(self, schema: Schema, obj: Any, calls: RegistryCalls) -> Exchange[Encoder]:
        file = yield from load_file(schema, calls)
        return ProtobufRowEncoder(find_message(file, [0]))


class MessageFiller:
    """Sets the fields of a message from a dict."""

    def __init__(self, message: Any) -> None:
        self._name: str = message.full_name
        self._fields: Mapping[str, Any] = message.fields_by_name
        self._fillers: dict[str, Fill] = {}

    def __call__(self, message: Any, value: Any) -> None:
        if not isinstance(value, dict):
            raise SerializationError(f"{self._name} is {value!r:.80}; it must be a struct of the fields of the message")
        oneofs: dict[str, str] = {}
        for name, part in value.items():
            if part is None:
                continue
            field = self._fields.get(name)
            if field is None:
                raise SerializationError(
                    f"{self._name} has no field {name!r}; its fields are {', '.join(self._fields)}; drop it, or "
                    "register another schema"
                )
            oneof = field.containing_oneof
            if oneof is not None and (other := oneofs.setdefault(oneof.name, name)) != name:
                raise SerializationError(
                    f"the fields {other} and {name} of {self._name} exclude each other (oneof {oneof.name}); leave one null"
                )
            self._set(message, field, part)

    def _set(self, message: Any, field: Any, value: Any) -> None:
        try:
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                self._set_map(getattr(message, field.name), field, value)
            elif is_repeated(field):
                self._set_list(getattr(message, field.name), field, value)
            elif field.message_type is not None:
                part = getattr(message, field.name)
                part.SetInParent()  # an empty message is not an absent one
                self._filler(field)(part, value)
            else:
                setattr(message, field.name, scalar_of(field, value))
        except (TypeError, ValueError, OverflowError, AttributeError, json_format.Error) as error:
            raise SerializationError(
                f"field {self._name}.{field.name} is {value!r:.80}: {error}; change the value, or register another schema"
            ) from error

    def _set_list(self, items: Any, field: Any, value: Any) -> None:
        if not isinstance(value, list):
            raise TypeError("must be a list")
        for item in value:
            if item is None:
                raise TypeError("an item of a repeated field cannot be null")
            if field.message_type is not None:
                self._filler(field)(items.add(), item)
            else:
                items.append(scalar_of(field, item))

    def _set_map(self, entries: Any, field: Any, value: Any) -> None:
        if not isinstance(value, dict):
            raise TypeError("must be a map")
        kind = field.message_type.fields_by_name["value"]
        for key, part in value.items():
            if part is None:
                raise TypeError("a value of a map cannot be null")
            if kind.message_type is not None:
                self._filler(kind)(entries[key], part)
            else:
                entries[key] = scalar_of(kind, part)

    def _filler(self, field: Any) -> Fill:
        """Return what sets the messages of a field; made once, when a row has one, because messages may be recursive."""
        found = self._fillers.get(field.full_name)
        if found is None:
            found = self._fillers[field.full_name] = make_filler(field.message_type)
        return found


def make_filler(message: Any) -> Fill:
    """Return what sets a message. JSON text is accepted where columns have it."""
    name = message.full_name
    if name == KNOWN + "Timestamp":
        return fill_timestamp
    if name == KNOWN + "Duration":
        return fill_duration
    if name in TEXTS:
        return fill_from_text
    fill = MessageFiller(message)
    if name in WRAPPERS:
        return lambda part, value: fill(part, value if isinstance(value, dict) else {"value": value})
    return lambda part, value: fill_from_text(part, value) if isinstance(value, str) else fill(part, value)


def fill_timestamp(message: Any, value: Any) -> None:
    if not isinstance(value, datetime):
        raise TypeError("must be a timestamp")
    message.FromDatetime(value)
    message.nanos += getattr(value, "nanosecond", 0)  # of pandas' timestamps, which pyarrow returns for nanoseconds


def fill_duration(message: Any, value: Any) -> None:
    if not isinstance(value, timedelta):
        raise TypeError("must be a duration")
    message.FromTimedelta(value)


def fill_from_text(message: Any, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError("must be JSON text")
    json_format.Parse(value, message)


def scalar_of(field: Any, value: Any) -> Any:
    """Return the value of a scalar field: for an enum the number of its name."""
    if field.type != ENUM or not isinstance(value, str):
        return value
    found = field.enum_type.values_by_name.get(value)
    if found is not None:
        return found.number
    try:
        return int(value)  # the text of a number without a name
    except ValueError:
        names = ", ".join(field.enum_type.values_by_name)
        raise ValueError(f"it is not one of {names}") from None
