"""Generated messages: any value a plan allows, from hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from ottla.protocol.apis import APIS
from ottla.protocol.codec import KINDS, Plan, Step
from ottla.protocol.schema import Message

NAMES = {kind: name for name, kind in KINDS.items()}
LONG = st.sampled_from([126, 127, 128, 300, 16_382, 16_383])
"""About where a length of one octet takes a second one and then a third: what is written is one more (KIP-482)."""
TEXT = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.builds(lambda size, char: char * size, LONG, st.sampled_from("aé")),
)
OCTETS = st.one_of(st.binary(max_size=8), LONG.map(lambda size: b"o" * size))
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "string": TEXT,
    "bytes": OCTETS,
    "records": st.one_of(st.binary(max_size=8), st.just(b"r" * 5000)),
    "uuid": st.one_of(st.just(UUID(int=0)), st.uuids()),
}
Special = Callable[[Plan, Step], st.SearchStrategy[Any] | None]
"""Narrower values for a field, where whoever reads them cannot take them all."""

MESSAGES: list[tuple[type[Message], int]] = [
    (cls, version)
    for api in APIS.values()
    for cls in (api.request, api.response)
    for version in range(api.versions.first, api.versions.last + 1)
]
"""Every message we have, in every version."""


def ids(value: object) -> str:
    """How a parametrized test names a message and a version."""
    return value.__name__ if isinstance(value, type) else f"v{value}"


def messages(plan: Plan, special: Special = lambda plan, step: None) -> st.SearchStrategy[Any]:
    """Messages of a plan; what its version lacks stays at its default."""
    parts = {step.name: values(plan, step, special) for step in plan.written}
    parts |= {step.name: tagged_values(plan, step, special) for _, step in plan.tags.values()}
    return st.builds(plan.make, **parts)


def values(plan: Plan, step: Step, special: Special) -> st.SearchStrategy[Any]:
    """Values of one field."""
    kind = NAMES[step.kind]
    if kind == "array":
        some: st.SearchStrategy[Any] = lists(values(plan, step.item, special), NAMES[step.item.kind])
    elif kind == "struct":
        some = messages(step.item, special)
    else:
        narrow = special(plan, step)
        some = narrow if narrow is not None else SIMPLE.get(kind, st.integers(step.least, step.most))
    return st.one_of(st.none(), some) if step.nullable else some


def lists(items: st.SearchStrategy[Any], kind: str) -> st.SearchStrategy[Any]:
    """Short ones of anything, and of what is small itself also long ones."""
    short = st.lists(items, max_size=2)
    if kind in ("struct", "array", "string", "bytes", "records"):
        return short
    return st.one_of(short, st.builds(lambda size, item: [item] * size, st.sampled_from([126, 127, 128, 300]), items))


def tagged_values(plan: Plan, step: Step, special: Special) -> st.SearchStrategy[Any]:
    """A tagged struct is there and says something, or it is not there."""
    if NAMES[step.kind] == "struct":
        return st.one_of(st.none(), messages(step.item, special).filter(lambda part: part != step.item.make()))
    default = list(step.default) if isinstance(step.default, tuple) else step.default
    return st.one_of(st.just(default), values(plan, step, special))


def tidy(message: Any) -> Any:
    """The message with every empty tuple a list, as some defaults are the one and what is read the other."""
    if isinstance(message, (list, tuple)):
        return [tidy(item) for item in message]
    if hasattr(message, "__dataclass_fields__"):
        return type(message)(*(tidy(getattr(message, name)) for name in message.__dataclass_fields__))
    return message
