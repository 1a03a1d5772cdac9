"""Protobuf: read by `proto_text`, checked by protobuf's DescriptorPool, compared by the wire format's rules.

A schema may also be given as a FileDescriptorProto in base64, as Confluent's Python client sends it, and be returned so
with `format=serialized`. The names of differences are those of Confluent's registry.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from ottla.extras import extra
from ottla.registry.errors import InvalidSchemaError, SchemaLimitError
from ottla.registry.kinds.kind import MOST_DEPTH, MOST_MESSAGES, Budget, NamedText, difference
from ottla.registry.kinds.proto_text import Field, read_proto, write_proto

with extra("registry"):
    from google.protobuf import descriptor_pb2 as pb
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError

MAIN = "default.proto"
OWN_IMPORTS = "google/protobuf/"
"""The imports that protobuf brings."""
GROUPS = (
    (Field.TYPE_INT32, Field.TYPE_INT64, Field.TYPE_UINT32, Field.TYPE_UINT64, Field.TYPE_BOOL, Field.TYPE_ENUM),
    (Field.TYPE_SINT32, Field.TYPE_SINT64),
    (Field.TYPE_STRING, Field.TYPE_BYTES),
    (Field.TYPE_FIXED32, Field.TYPE_SFIXED32),
    (Field.TYPE_FIXED64, Field.TYPE_SFIXED64),
)
"""Types whose values have the same form on the wire."""
FAMILIES = {kind: position for position, group in enumerate(GROUPS) for kind in group}
UNPACKED = (Field.TYPE_STRING, Field.TYPE_BYTES, Field.TYPE_MESSAGE, Field.TYPE_GROUP)
"""Types of which a single value is a list of one value on the wire."""


class ProtobufSchema:
    """A parsed schema."""

    def __init__(self, file: Any, resolved: Any, types: dict[str, Any]) -> None:
        self._resolved = resolved
        self._types = types
        """Messages by full name, imported ones included."""
        self.canonical = write_proto(file)

    def normalized(self) -> str:
        """Return the text with full type names, and fields, imports and options in a fixed order."""
        file = pb.FileDescriptorProto()
        file.CopyFrom(self._resolved)
        imports = sorted(file.dependency)
        if not file.public_dependency and not file.weak_dependency:
            del file.dependency[:]
            file.dependency.extend(imports)
        for message in file.message_type:
            sort_fields(message)
        return write_proto(file)

    def formatted(self, form: str) -> str:
        """Return the schema in a format of the interface: `serialized` is the descriptor in base64."""
        if form == "serialized":
            return base64.b64encode(self._resolved.SerializeToString()).decode()
        return self.canonical

    def differences_from(self, writer: ProtobufSchema) -> list[str]:
        """Return why data of `writer` cannot be read with this schema."""
        return Comparison(self, writer).compare()[:MOST_MESSAGES]


class ProtobufKind:
    """Protobuf."""

    name = "PROTOBUF"

    def parse(self, text: str, references: Sequence[NamedText]) -> ProtobufSchema:
        """Parse a schema. Imports are the names of referenced schemas, or files that protobuf brings."""
        pool = DescriptorPool()
        added: set[str] = set()
        for reference in references:
            add_file(pool, read_file(reference.text, reference.name), added)
        file = read_file(text, MAIN)
        add_file(pool, file, added)
        types: dict[str, Any] = {}
        for name in added:
            found = pb.FileDescriptorProto()
            pool.FindFileByName(name).CopyToProto(found)
            collect_messages(types, found.package, found.message_type)
        resolved = pb.FileDescriptorProto()
        pool.FindFileByName(MAIN).CopyToProto(resolved)
        return ProtobufSchema(file, resolved, types)


def read_file(text: str, name: str) -> Any:
    """Return the FileDescriptorProto of a text or of base64."""
    try:
        raw = base64.b64decode(text, validate=True)
        file = pb.FileDescriptorProto.FromString(raw)
    except (binascii.Error, ValueError, DecodeError):
        return read_proto(text, name)
    check_nesting(file)
    file.name = name
    return file


def check_nesting(file: Any) -> None:
    """Raise SchemaLimitError for messages nested too deeply."""
    level, depth = list(file.message_type), 0
    while level:
        depth += 1
        if depth > MOST_DEPTH // 2:
            raise SchemaLimitError(f"messages are nested deeper than {MOST_DEPTH // 2}")
        level = [each for message in level for each in message.nested_type]


def add_file(pool: Any, file: Any, added: set[str]) -> None:
    """Add a file with its imports to a pool, which checks it."""
    if file.name in added:
        return
    for name in file.dependency:
        if name not in added:
            add_known(pool, name, added)
    try:
        pool.AddSerializedFile(file.SerializeToString())
        pool.FindFileByName(file.name)
    except (TypeError, KeyError, ValueError) as error:
        reason = str(error).replace("Couldn't build proto file into descriptor pool: ", "").strip()
        raise InvalidSchemaError(reason) from None
    added.add(file.name)


def add_known(pool: Any, name: str, added: set[str]) -> None:
    """Add a file that protobuf brings, with its imports."""
    module = None
    if name.startswith(OWN_IMPORTS) and name.removeprefix(OWN_IMPORTS).replace("_", "").isalnum() is False:
        try:
            module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        except ImportError:
            module = None
    if module is None:
        raise InvalidSchemaError(
            f"import {name!r} is unknown: register its schema, and name it in references with this name"
        )
    file = pb.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    add_file(pool, file, added)


def collect_messages(types: dict[str, Any], space: str, messages: Any) -> None:
    """Add messages and their nested ones by full name."""
    for message in messages:
        full = f"{space}.{message.name}" if space else message.name
        types[f".{full}"] = message
        collect_messages(types, full, message.nested_type)


def sort_fields(message: Any) -> None:
    """Order the fields of a message by number."""
    ordered = sorted(message.field, key=lambda each: each.number)
    kept = [pb.FieldDescriptorProto.FromString(each.SerializeToString()) for each in ordered]
    del message.field[:]
    message.field.extend(kept)
    for nested in message.nested_type:
        sort_fields(nested)


class Comparison:
    """The differences between a reader's and a writer's schema."""

    def __init__(self, reader: ProtobufSchema, writer: ProtobufSchema) -> None:
        self._reader = reader
        self._writer = writer
        self._budget = Budget()
        self._compared: set[tuple[str, str]] = set()

    def compare(self) -> list[str]:
        """Return all differences."""
        own, other = self._reader._resolved, self._writer._resolved
        found = []
        if own.package != other.package:
            found.append(
                difference("PACKAGE_CHANGED", f"the package changed from {other.package!r} to {own.package!r}")
            )
        pending = [(message, other.package, "#") for message in other.message_type]
        for message, _, path in pending:
            found += self._compare_named(scoped(own.package, message.name), scoped(other.package, message.name), path)
        return list(dict.fromkeys(found))

    def _compare_named(self, own_name: str, other_name: str, path: str) -> Iterator[str]:
        """Compare messages by full name, and those nested in them."""
        if (own_name, other_name) in self._compared or len(self._compared) > 10_000:
            return
        self._compared.add((own_name, other_name))
        own, other = self._reader._types.get(own_name), self._writer._types[other_name]
        place = f"{path}/{other.name}"
        if own is None:
            yield difference("MESSAGE_REMOVED", f'message "{place}" was removed', place)
            return
        yield from self._compare_fields(own, other, place)
        for nested in other.nested_type:
            if not nested.options.map_entry:
                yield from self._compare_named(f"{own_name}.{nested.name}", f"{other_name}.{nested.name}", place)

    def _compare_fields(self, own: Any, other: Any, path: str) -> Iterator[str]:
        by_number = {each.number: each for each in own.field}
        other_numbers = {each.number for each in other.field}
        for field in other.field:
            self._budget.spend()
            place = f"{path}/{field.number}"
            new = by_number.get(field.number)
            if new is None:
                if field.label == Field.LABEL_REQUIRED:
                    yield difference("REQUIRED_FIELD_REMOVED", f'required field "{place}" was removed', field.name)
                elif is_in_oneof(field):
                    yield difference("ONEOF_FIELD_REMOVED", f'field "{place}" of a oneof was removed', field.name)
            else:
                yield from self._compare_types(new, field, own, other, place)
        for new in own.field:
            if new.number not in other_numbers and new.label == Field.LABEL_REQUIRED:
                yield difference("REQUIRED_FIELD_ADDED", f'required field "{path}/{new.number}" was added', new.name)
        yield from compare_oneofs(own, other, path)

    def _compare_types(self, new: Any, old: Any, own: Any, other: Any, path: str) -> Iterator[str]:
        entries = entry_of(own, new), entry_of(other, old)
        if (entries[0] is None) != (entries[1] is None):
            yield difference("FIELD_KIND_CHANGED", f'field "{path}" was or became a map', old.name)
        elif entries[0] is not None and entries[1] is not None:
            for each, before in zip(entries[0].field, entries[1].field, strict=True):
                yield from self._compare_types(each, before, entries[0], entries[1], path)
        elif Field.TYPE_MESSAGE in (new.type, old.type) or Field.TYPE_GROUP in (new.type, old.type):
            if new.type != old.type:
                yield difference("FIELD_KIND_CHANGED", f'the kind of field "{path}" changed', old.name)
            else:
                yield from self._compare_message_types(new, old, path)
        elif new.type != old.type and FAMILIES.get(new.type, -1) != FAMILIES.get(old.type, -2):
            yield difference("FIELD_SCALAR_KIND_CHANGED", f'the kind of field "{path}" changed', old.name)
        is_list = new.label == Field.LABEL_REPEATED, old.label == Field.LABEL_REPEATED
        if is_list[0] != is_list[1] and old.type not in UNPACKED:
            yield difference("FIELD_NUMERIC_LABEL_CHANGED", f'the label of numeric field "{path}" changed', old.name)

    def _compare_message_types(self, new: Any, old: Any, path: str) -> Iterator[str]:
        own, other = self._reader._resolved.package, self._writer._resolved.package
        if unscoped(own, new.type_name) != unscoped(other, old.type_name):
            yield difference(
                "FIELD_NAMED_TYPE_CHANGED", f'the type of field "{path}" changed', f"{old.type_name} to {new.type_name}"
            )
        elif new.type_name in self._reader._types and old.type_name in self._writer._types:
            yield from self._compare_named(new.type_name, old.type_name, path)


def compare_oneofs(own: Any, other: Any, path: str) -> Iterator[str]:
    """Compare which fields exclude each other."""
    other_by_number = {each.number: each for each in other.field}
    names = {each.name for index, each in enumerate(other.oneof_decl)}
    for index, oneof in enumerate(own.oneof_decl):
        members = [each for each in own.field if is_in_oneof(each) and each.oneof_index == index]
        moved = [
            each.name
            for each in members
            if each.number in other_by_number and not is_in_oneof(other_by_number[each.number])
        ]
        place = f"{path}/{oneof.name}"
        if len(moved) > 1:
            yield difference(
                "MULTIPLE_FIELDS_MOVED_TO_ONEOF", f'several fields were moved to oneof "{place}"', ", ".join(moved)
            )
        elif moved and oneof.name in names:
            yield difference(
                "FIELD_MOVED_TO_EXISTING_ONEOF", f'a field was moved to existing oneof "{place}"', moved[0]
            )


def is_in_oneof(field: Any) -> bool:
    """Return True if a field is in a oneof of the author, not in that of an optional field."""
    return bool(field.HasField("oneof_index") and not field.proto3_optional)


def entry_of(message: Any, field: Any) -> Any:
    """Return the message for the entries of a map field, None for other fields."""
    if field.label != Field.LABEL_REPEATED or field.type != Field.TYPE_MESSAGE:
        return None
    name = field.type_name.rpartition(".")[2]
    return next((each for each in message.nested_type if each.options.map_entry and each.name == name), None)


def scoped(package: str, name: str) -> str:
    """Return a full name with its leading dot."""
    return f".{package}.{name}" if package else f".{name}"


def unscoped(package: str, name: str) -> str:
    """Return a full name without a package."""
    return name.removeprefix(f".{package}.") if package else name.removeprefix(".")
