"""Conversions between Ottla's messages and those of `kafka-python`, an independent encoder."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kafka.protocol.schemas.fields.codecs import BitField
from msgspec import Struct

from ottla.protocol.apis import DECLARED
from ottla.protocol.schema import SPECIAL, USUAL, Message

NEWER = {("ApiVersions", 5), ("DeleteGroups", 3), ("TxnOffsetCommit", 6)}
"""Versions of Kafka 4.4, which kafka-python 3.0 does not have; `interop/test_messages.py` compares them with Java's."""
LACKING = {each.name for each in DECLARED.values() if each.to_controller or each.key >= 76} | {
    "UnregisterBroker",
    "AddRaftVoter",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "RemoveRaftVoter",
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
}
"""The messages that kafka-python does not have."""
HOMES = [import_module(f"kafka.protocol.{home}") for home in ("admin", "consumer", "metadata", "producer", "sasl")]


def their_class(cls: type[Message]) -> Any:
    """kafka-python's class for a message of ours; it serves all versions."""
    return next(getattr(home, cls.__name__) for home in HOMES if hasattr(home, cls.__name__))


def to_theirs(message: Any, theirs: Any, version: int) -> Any:
    """The same message as one of kafka-python's, with only what `version` has."""
    given = {}
    for name, field in theirs._struct.fields.items():
        if field.for_version_q(version):
            ours = our_name(message, name)
            value = getattr(message, ours)
            said = SPECIAL[type(message)].get(ours, USUAL)
            # kafka-python sends a given tagged field even if it has the default value.
            if said.tag is None or differs(value, said.default):
                given[name] = value_to_theirs(value, field, version)
    return theirs(version=version, **given)


def our_name(message: Any, name: str) -> str:
    """Our name of a field, which theirs may spell differently or shorten."""
    names: dict[str, str] = {ours.replace("_", ""): ours for ours in message.__struct_fields__}
    plain = name.replace("_", "")
    found = names.get(plain) or next((ours for spelled, ours in names.items() if spelled.endswith(plain)), None)
    return found or next(ours for spelled, ours in names.items() if spelled.startswith(plain))


def differs(value: Any, default: Any) -> bool:
    """True if a tagged field differs from its default; an empty list equals an empty tuple."""
    return bool((tuple(value) if isinstance(value, list) else value) != default)


def value_to_theirs(value: Any, field: Any, version: int) -> Any:
    if isinstance(value, list):
        return [value_to_theirs(item, field, version) for item in value] if field.is_struct_array() else value
    if getattr(field, "_type", None) is BitField:  # where it knows that a number is one
        return {bit for bit in range(31) if value >> bit & 1}
    if isinstance(value, Struct):
        return to_theirs(value, field.data_class, version)
    return value


def their_frame(message: Any, correlation_id: int, client_id: str) -> bytes:
    """kafka-python's bytes for one of its messages and its header."""
    message.with_header(correlation_id=correlation_id, **({"client_id": client_id} if message.is_request() else {}))
    return bytes(message.encode(header=True))
