"""Drawn messages: any value that a plan allows, the edges of each kind among them.

The values depend on the seed alone, so that a failure can be repeated; ARGS="--hypothesis-profile=thorough" draws fifty times as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import settings
from msgspec import Struct

from ottla.protocol.apis import APIS
from ottla.protocol.codec import KINDS, Plan, Step
from ottla.protocol.schema import Message

USUAL_EXAMPLES = 40
"""The default number of examples of a property."""
NAMES = {kind: name for name, kind in KINDS.items()}
LONG = (126, 127, 128, 300, 16_382, 16_383)
"""About where a length of one octet takes a second one and then a third: what is written is one more (KIP-482)."""
LONG_LIST = (126, 127, 128, 300)
CHARACTERS = "a0.-_ \0\n\x7fé€\u2028\uffff😀"
WITHOUT_LONG_LISTS = ("struct", "array", "string", "bytes", "records")
"""A long list of these would be a large message."""

Draw = Callable[[Random], Any]
Special = Callable[[Plan, Step], Draw | None]
"""Narrower values for a field if the other implementation cannot read all of them."""

MESSAGES: list[tuple[type[Message], int]] = [
    (cls, version)
    for api in APIS.values()
    for cls in (api.request, api.response)
    for version in range(api.versions.first, api.versions.last + 1)
]
"""Every message we have, in every version."""


def ids(value: object) -> str:
    """The id of a parametrized test for a message and a version."""
    return value.__name__ if isinstance(value, type) else f"v{value}"


def chances(count: int, name: object = "") -> Iterator[Random]:
    """A source of chance for each of so many examples, the same ones each time."""
    for example in range(count * settings().max_examples // USUAL_EXAMPLES):
        yield Random(f"{name} {example}")


def one_of(*values: Any) -> Draw:
    """Draws one of these."""
    return lambda chance: chance.choice(values)


def nothing_special(plan: Plan, step: Step) -> Draw | None:
    return None


def messages(plan: Plan, special: Special = nothing_special) -> Draw:
    """Draws messages of a plan; what its version lacks stays at its default."""
    parts = {step.name: values(plan, step, special) for step in plan.written}
    parts |= {step.name: tagged_values(plan, step, special) for _, step in plan.tags.values()}
    return lambda chance: plan.make(**{name: draw(chance) for name, draw in parts.items()})


def values(plan: Plan, step: Step, special: Special) -> Draw:
    """Draws values of one field."""
    some = present_values(plan, step, special)
    return (lambda chance: None if chance.random() < 0.2 else some(chance)) if step.nullable else some


def present_values(plan: Plan, step: Step, special: Special) -> Draw:
    kind = NAMES[step.kind]
    if kind == "array":
        return lists(values(plan, step.item, special), NAMES[step.item.kind])
    if kind == "struct":
        return messages(step.item, special)
    return special(plan, step) or SIMPLE.get(kind) or integers(step.least, step.most)


def lists(items: Draw, kind: str) -> Draw:
    """Draws short ones of anything, and of what is small itself now and then a long one."""

    def draw(chance: Random) -> list[Any]:
        if kind not in WITHOUT_LONG_LISTS and chance.random() < 0.1:
            return [items(chance)] * chance.choice(LONG_LIST)
        return [items(chance) for _ in range(chance.choice((0, 1, 1, 2)))]

    return draw


def tagged_values(plan: Plan, step: Step, special: Special) -> Draw:
    """A tagged struct is present with a value that is not the default, or absent."""
    absent = None if NAMES[step.kind] == "struct" else default_of(step)
    some = values(plan, step, special)

    def draw(chance: Random) -> Any:
        drawn = absent if chance.random() < 0.5 else some(chance)
        return absent if NAMES[step.kind] == "struct" and drawn == step.item.make() else drawn

    return draw


def default_of(step: Step) -> Any:
    return list(step.default) if isinstance(step.default, tuple) else step.default


def integers(least: int, most: int) -> Draw:
    """Draws whole numbers: one in two is an edge or small."""
    edges = [each for each in (least, -1, 0, 1, 2, most) if least <= each <= most]
    return lambda chance: chance.choice(edges) if chance.random() < 0.5 else chance.randint(least, most)


def texts(chance: Random) -> str:
    if chance.random() < 0.05:
        return chance.choice("aé") * chance.choice(LONG)
    return "".join(chance.choices(CHARACTERS, k=chance.randrange(9)))


def octets(chance: Random) -> bytes:
    return b"o" * chance.choice(LONG) if chance.random() < 0.05 else chance.randbytes(chance.randrange(9))


def floats(chance: Random) -> float:
    return chance.choice((0.0, -0.0, 1.5, 5e-324, 1.7976931348623157e308, float("inf"), -float("inf"), chance.random()))


SIMPLE: dict[str, Draw] = {
    "bool": one_of(False, True),
    "float64": floats,
    "string": texts,
    "bytes": octets,
    "records": lambda chance: b"r" * 5000 if chance.random() < 0.1 else octets(chance),
    "uuid": lambda chance: UUID(int=chance.choice((0, 1, chance.getrandbits(128)))),
}


def tidy(message: Any) -> Any:
    """The message with every empty tuple a list, as some defaults are the one and what is read the other."""
    if isinstance(message, (list, tuple)):
        return [tidy(item) for item in message]
    if isinstance(message, Struct):
        return type(message)(*(tidy(getattr(message, name)) for name in message.__struct_fields__))
    return message
