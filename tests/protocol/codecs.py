"""The codec as it is installed, and uncompiled: both have to behave the same."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ottla.protocol import codec
from ottla.protocol.codec import Plan, Step
from tests.plain import plain

PLAIN = plain("ottla.protocol.codec")
CODECS = {"as built": codec, "plain": PLAIN}


def plan_for(module: ModuleType, plan: Plan) -> Any:
    """The same plan, made of that module's classes."""
    if module is codec:
        return plan
    steps = [step_for(module, step) for step in plan.steps]
    tags = {tag: (index, step_for(module, step)) for tag, (index, step) in plan.tags.items()}
    return module.Plan(plan.make, steps, tags, plan.flexible, plan.version)


def step_for(module: ModuleType, step: Step) -> Any:
    item = step.item
    if isinstance(item, Plan):
        item = plan_for(module, item)
    elif isinstance(item, Step):
        item = step_for(module, item)
    return module.Step(step.kind, step.name, step.nullable, item, step.default, step.least_bytes, step.ignorable)


def joined(parts: Any) -> bytes:
    """Parts in memory, as one."""
    return b"".join(map(bytes, parts))
