"""Compatibility levels: which earlier versions a new schema is compared with, and in which direction. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.registry.kinds.kind import ParsedSchema, difference


class Level(NamedTuple):
    """The requirements of a compatibility level."""

    backward: bool
    """The new schema must read the data of earlier ones."""
    forward: bool
    """Earlier schemas must read the data of the new one."""
    transitive: bool
    """The rule applies to all earlier versions, not only to the last one."""


LEVELS = {
    "NONE": Level(False, False, False),
    "BACKWARD": Level(True, False, False),
    "BACKWARD_TRANSITIVE": Level(True, False, True),
    "FORWARD": Level(False, True, False),
    "FORWARD_TRANSITIVE": Level(False, True, True),
    "FULL": Level(True, True, False),
    "FULL_TRANSITIVE": Level(True, True, True),
}
DEFAULT_LEVEL = "BACKWARD"


class Earlier(NamedTuple):
    """An earlier version."""

    version: int
    kind: str
    schema: ParsedSchema


def check_compatibility(level: str, kind: str, schema: ParsedSchema, earlier: Sequence[Earlier]) -> list[str]:
    """Return why a schema breaks a level, with the first earlier version that it is incompatible with."""
    rule = LEVELS[level]
    if not (rule.backward or rule.forward):
        return []
    for each in reversed(earlier if rule.transitive else earlier[-1:]):
        if each.kind != kind:
            found = [difference("TYPE_MISMATCH", f"the schema type changed from {each.kind} to {kind}")]
        else:
            found = schema.differences_from(each.schema) if rule.backward else []
            if rule.forward:
                found = found + each.schema.differences_from(schema)
        if found:
            return [*found, f"{{oldSchemaVersion: {each.version}}}", f"{{compatibility: '{level}'}}"]
    return []
