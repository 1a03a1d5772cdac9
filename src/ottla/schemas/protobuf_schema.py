"""Load Protobuf schemas of a registry as descriptors, without generated classes."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.exchange import Exchange
from ottla.schemas.serde import MAX_REFERENCES
from ottla.schemas.values import Schema

with extra("schemas"):
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

SERIALIZED = "serialized"
"""The format in which a registry returns a schema as a descriptor instead of text."""
ROOT = "ottla-root.proto"
KNOWN_FILE = re.compile(r"google/(protobuf|type)/(\w+)\.proto")
"""Files that a schema may import without a reference; installed packages have them as modules."""


def load_file(schema: Schema, calls: RegistryCalls) -> Exchange[Any]:
    """Return the file descriptor of a schema, in a pool with what it imports. Raises SerializationError."""
    pool = descriptor_pool.DescriptorPool()
    try:
        yield from add_file(pool, ROOT, schema, calls, set())
        return pool.FindFileByName(ROOT)
    except (TypeError, ValueError, KeyError, ImportError, RecursionError, DecodeError) as error:
        raise SerializationError(
            f"the descriptor of the Protobuf schema cannot be loaded: {error}; use a registry that returns schemas as descriptors "
            "(format=serialized), and add the references of the schema"
        ) from error


def add_file(pool: Any, name: str, schema: Schema, calls: RegistryCalls, added: set[str]) -> Exchange[None]:
    """Add a file to the pool, after those that it imports."""
    if name in added:
        return
    added.add(name)
    if len(added) > MAX_REFERENCES:
        raise SerializationError(f"the schema imports more than {MAX_REFERENCES} files")
    file = descriptor_pb2.FileDescriptorProto.FromString(b64decode(schema.schema_str or "", validate=True))
    for reference in schema.references:
        assert reference.name is not None
        assert reference.subject is not None
        used = yield from calls.version(reference.subject, reference.version or "latest", True, SERIALIZED)
        yield from add_file(pool, reference.name, used.schema, calls, added)
    for imported in file.dependency:
        add_known_file(pool, imported, added)
    file.name = name
    pool.Add(file)


def add_known_file(pool: Any, name: str, added: set[str]) -> None:
    """Add a file that comes with Protobuf, if it is one."""
    known = KNOWN_FILE.fullmatch(name)
    if known is None or name in added:
        return
    added.add(name)
    descriptor = import_module(f"google.{known[1]}.{known[2]}_pb2").DESCRIPTOR
    file = descriptor_pb2.FileDescriptorProto.FromString(descriptor.serialized_pb)
    for imported in file.dependency:
        add_known_file(pool, imported, added)
    pool.Add(file)


def find_message(file: Any, indexes: Sequence[int]) -> Any:
    """Return the descriptor of the message at a path in a file. Raises SerializationError if there is none."""
    found: Any = None
    for index in indexes:
        siblings = list(file.message_types_by_name.values()) if found is None else found.nested_types
        if not 0 <= index < len(siblings):
            raise SerializationError(f"the schema has no message {list(indexes)}; another schema wrote the value")
        found = siblings[index]
    if found is None:
        raise SerializationError("the value has no message index; another serializer wrote it")
    return found


def find_message_by_name(file: Any, name: str) -> Any:
    """Return the descriptor of a message by its full name. Raises SerializationError if there is none."""
    waiting = list(file.message_types_by_name.values())
    for message in waiting:
        if message.full_name == name:
            return message
        waiting.extend(message.nested_types)
    names = ", ".join(message.full_name for message in waiting[:20])
    raise SerializationError(f"the reader's schema has no message {name!r}; its messages are {names or 'none'}")
