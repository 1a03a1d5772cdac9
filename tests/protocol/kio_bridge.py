"""Conversions between Ottla's messages and those of `kio`, an independent encoder.

It has one class per version, moments and spans instead of milliseconds, and None for the zero id.
"""

from __future__ import annotations

import datetime
import io
import typing
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from ottla.protocol.apis import api_of
from ottla.protocol.codec import Plan, Step
from ottla.protocol.schema import ZERO_UUID, Message
from tests.protocol.values import Draw, Special, integers, one_of

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
SPECIAL: dict[str, Draw] = {
    "error_code": one_of(*map(int, ErrorCode)),
    "timedelta_i64": integers(-(10**13), 10**13),
    "datetime_i64": lambda chance: chance.randint(0, 10**9) * 1000,
    "datetime_i64 or none": lambda chance: chance.choice((-1, chance.randint(0, 10**9) * 1000)),
}

RENAMED = {
    ("StreamsGroupHeartbeatResponse", "acceptablerecoverylag"): "acceptablerecoverylaglegacy",
    ("TxnOffsetCommitRequest", "generationid"): "generationidormemberepoch",
}
"""Names that Kafka changed after kio's release, by class and former name."""


def kio_class(cls: type[Message], version: int) -> type[Any]:
    """The class of kio for a message of ours in one version."""
    kind = "request" if cls is api_of(cls).request else "response"
    package = "".join(f"_{c.lower()}" if c.isupper() else c for c in api_of(cls).name).lstrip("_")
    found: type[Any] = getattr(import_module(f"kio.schema.{package}.v{version}.{kind}"), cls.__name__)
    return found


def kio_values(theirs: type[Any]) -> dict[tuple[str, str], Draw]:
    """For fields that kio narrows, by the names of class and field: the values it can take."""
    narrowed: dict[tuple[str, str], Draw] = {}
    for field in fields(theirs):
        part = part_of(field.type)
        if part is not None:
            narrowed |= kio_values(part)
        elif (kind := narrower_kind(field)) in SPECIAL:
            narrowed[theirs.__name__, field.name] = SPECIAL[kind]
            narrowed[theirs.__name__, f"{field.name}_ms"] = SPECIAL[kind]
    return narrowed


def narrower_kind(field: Any) -> str:
    """A key of SPECIAL, for fields that have one: no moment at all is -1."""
    kind: str = field.metadata["kafka_type"]
    return f"{kind} or none" if kind == "datetime_i64" and "None" in str(field.type) else kind


def narrowed_for(theirs: type[Any]) -> Special:
    """Return the `special` argument of `values.messages` that limits values to those that kio can encode."""
    narrowed = kio_values(theirs)

    def special(plan: Plan, step: Step) -> Draw | None:
        return narrowed.get((getattr(plan.make, "__name__", ""), step.name))

    return special


def part_of(hint: Any) -> type[Any] | None:
    """The entity class a field holds, itself or in a tuple, or None for a simple value."""
    if hasattr(hint, "__kio_schema__") or hasattr(hint, "__flexible__"):
        return typing.cast(type[Any], hint)
    found = [part_of(arg) for arg in typing.get_args(hint)]
    return next((part for part in found if part is not None), None)


def to_kio(message: Any, theirs: type[Any]) -> Any:
    """The same message as one of kio's; fails where it has a field that we lack."""
    return theirs(**{field.name: value_to_kio(our_value(message, field.name), field) for field in fields(theirs)})


def our_value(message: Any, name: str) -> Any:
    """The value of a field, which may end in a unit here, or spell a digit differently."""
    names = {ours.replace("_", ""): ours for ours in message.__struct_fields__}
    plain = name.replace("_", "")
    plain = RENAMED.get((type(message).__name__, plain), plain)
    return getattr(message, names[plain] if plain in names else names[f"{plain}ms"])


def value_to_kio(value: Any, field: Any) -> Any:
    part = part_of(field.type)
    if part is not None:
        if value is None:
            return None if field.default is None or "None" in str(field.type) else nothing(part)
        return tuple(to_kio(item, part) for item in value) if isinstance(value, list) else to_kio(value, part)
    if isinstance(value, list):
        return tuple(simple_to_kio(item, field.metadata["kafka_type"]) for item in value)
    return simple_to_kio(value, field.metadata["kafka_type"])


def nothing(part: type[Any]) -> Any:
    """A part with its defaults, or all zeros if it has none."""
    lacking = [field for field in fields(part) if field.default is MISSING]
    return part(**{field.name: "" if field.metadata["kafka_type"] == "string" else 0 for field in lacking})


def simple_to_kio(value: Any, kind: str) -> Any:
    match kind:
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return datetime.timedelta(milliseconds=value)
        case "datetime_i64":
            return None if value == -1 else EPOCH + datetime.timedelta(milliseconds=value)
        case "uuid":
            return None if value == ZERO_UUID else value
    return value


def kio_encode(entity: Any) -> bytes:
    """Return kio's bytes of one of its messages."""
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def kio_decode(theirs: type[Any], data: bytes) -> Any:
    """Return kio's message of these bytes, all of which have to be read."""
    entity, size = entity_reader(theirs)(data, 0)
    assert size == len(data)
    return entity
