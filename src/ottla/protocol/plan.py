"""Build the `Plan` of a message class in a version: the steps that the codec executes."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

from ottla.errors import UnsupportedVersionError
from ottla.protocol.codec import KINDS, Plan, Step
from ottla.protocol.schema import Field, Message, fields

LEAST_BYTES = {"int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}
"""The minimum size of a value; one byte for other types."""
LEGACY_LENGTH_BYTES = {"string": 2, "bytes": 4, "records": 4, "array": 4}
"""The size of a length in versions that are not flexible."""


PLANS: dict[tuple[type[Message], int], Plan] = {}
"""The plans built so far."""


def plan_of(cls: type[Message], version: int) -> Plan:
    """Return the plan of `cls` in `version`; raise UnsupportedVersionError if the version does not exist."""
    plan = PLANS.get((cls, version))
    if plan is None:
        if version not in cls.VERSIONS:
            raise UnsupportedVersionError(f"{cls.__name__} has versions {cls.VERSIONS}, not {version}")
        plan = PLANS[cls, version] = struct_plan(cls, version, version in cls.FLEXIBLE)
    return plan


def struct_plan(cls: type, version: int, flexible: bool) -> Plan:
    """Return the plan of a message or of a struct in it; structs are as flexible as their message."""
    steps: list[Step] = []
    tags: dict[int, tuple[int, Step]] = {}
    for field in fields(cls):
        if version not in field.versions or (field.tag is not None and not flexible):
            steps.append(absent_step(field, field.ignorable))
        elif field.tag is None:
            nullable = version in field.nullable
            steps.append(step_of(field.name, field.type, version, flexible, nullable, field.default))
        else:
            tags[field.tag] = (len(steps), tagged_step(cls, field, version))
            # The field reads as its default unless the tagged fields contain it, and is written there.
            steps.append(absent_step(field, True))
    return Plan(cls, steps, tags, flexible, version)


def absent_step(field: Field, ignorable: bool) -> Step:
    """Return the step of a field that is not encoded in its place in this version."""
    return Step(KINDS["absent"], field.name, default=field.default, ignorable=ignorable)


def tagged_step(cls: type, field: Field, version: int) -> Step:
    """Return the step of a tagged field.

    A tagged struct can be null only if it is `marked`; otherwise it is just omitted.
    """
    nullable = version in field.nullable and (field.marked or not isinstance(field.type, type))
    step = step_of(field.name, field.type, version, True, nullable, field.default)
    if step.kind == KINDS["records"]:
        raise TypeError(f"{cls.__name__}.{field.name}: records cannot be tagged")
    return step


def step_of(name: str, hint: Any, version: int, flexible: bool, nullable: bool, default: Any = None) -> Step:
    """Return the step of a value of the declared type."""
    if typing.get_origin(hint) is Sequence:
        item = step_of(name, typing.get_args(hint)[0], version, flexible, False)
        least = 1 if flexible else LEGACY_LENGTH_BYTES["array"]
        return Step(KINDS["array"], name, nullable, item, default, least)
    if isinstance(hint, type):
        plan = struct_plan(hint, version, flexible)
        return Step(KINDS["struct"], name, nullable, plan, default, 1 if nullable else least_bytes(plan))
    (wire,) = typing.get_args(hint)[1:]
    least = LEAST_BYTES.get(wire.name) or (1 if flexible else LEGACY_LENGTH_BYTES.get(wire.name, 1))
    return Step(KINDS[wire.name], name, nullable, None, default, least)


def least_bytes(plan: Plan) -> int:
    """Return the minimum size of a struct: an array length that exceeds the rest of the frame is rejected at once."""
    return max(1, sum(step.least_bytes for step in plan.steps) + plan.flexible)
