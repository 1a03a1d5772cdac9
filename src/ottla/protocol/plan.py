"""A message class and a version become a `Plan`: the steps the codec walks."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

from ottla.errors import UnsupportedVersionError
from ottla.protocol.codec import KINDS, Plan, Step
from ottla.protocol.schema import Field, Message, fields

LEAST_BYTES = {"int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}
"""What a value takes at least; of those not here, one byte."""
LEGACY_LENGTH_BYTES = {"string": 2, "bytes": 4, "records": 4, "array": 4}
"""The width of a length where the message is not flexible."""


PLANS: dict[tuple[type[Message], int], Plan] = {}
"""The plans made so far."""


def plan_of(cls: type[Message], version: int) -> Plan:
    """How `cls` travels in `version`; UnsupportedVersionError where it has no such version."""
    plan = PLANS.get((cls, version))
    if plan is None:
        if version not in cls.VERSIONS:
            raise UnsupportedVersionError(f"{cls.__name__} has versions {cls.VERSIONS}, not {version}")
        plan = PLANS[cls, version] = struct_plan(cls, version, version in cls.FLEXIBLE)
    return plan


def struct_plan(cls: type, version: int, flexible: bool) -> Plan:
    """The plan of a message or of a part of one; parts are as flexible as their message."""
    steps: list[Step] = []
    tags: dict[int, tuple[int, Step]] = {}
    for field in fields(cls):
        if version not in field.versions or (field.tag is not None and not flexible):
            steps.append(absent(field, field.ignorable))
        elif field.tag is None:
            nullable = version in field.nullable
            steps.append(step_of(field.name, field.type, version, flexible, nullable, field.default))
        else:
            tags[field.tag] = (len(steps), tagged_step(cls, field, version))
            # It reads as its default unless the tag section says otherwise, and is written there.
            steps.append(absent(field, True))
    return Plan(cls, steps, tags, flexible, version)


def absent(field: Field, ignorable: bool) -> Step:
    """The step of a field that has no place of its own in this version."""
    return Step(KINDS["absent"], field.name, default=field.default, ignorable=ignorable)


def tagged_step(cls: type, field: Field, version: int) -> Step:
    """The step of a value in the tag section; there a struct is null only where it says so itself, else it is just not sent."""
    nullable = version in field.nullable and (field.marked or not isinstance(field.type, type))
    step = step_of(field.name, field.type, version, True, nullable, field.default)
    if step.kind == KINDS["records"]:
        raise TypeError(f"{cls.__name__}.{field.name}: records cannot be tagged")
    return step


def step_of(name: str, hint: Any, version: int, flexible: bool, nullable: bool, default: Any = None) -> Step:
    """How a value of the declared type travels."""
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
    """The fewest bytes a struct can take: a count that promises more than is left is refused at once."""
    return max(1, sum(step.least_bytes for step in plan.steps) + plan.flexible)
