"""What a table of settings is made of: `@settings` above a class with a field for each.

It is made by keywords and then stays as it is, like a frozen dataclass. What `dataclass` would write and compile for each is as
long as its fields are many, and a broker's hundred and fifty took a thirtieth of its start; so all tables share one of each
method, which looks at the fields when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast, dataclass_transform

C = TypeVar("C")
V = TypeVar("V")


class Beside(NamedTuple):
    """What is in a table and is no setting: each has its own, it is neither compared nor shown."""

    make: Callable[[], Any]


class Shape(NamedTuple):
    """What the shared methods need to know of a table."""

    defaults: dict[str, Any]
    """Of those settings that nobody has to say."""
    settings: tuple[str, ...]
    """All of them, in the order of their declaration."""
    beside: dict[str, Callable[[], Any]]


def beside(*, default_factory: Callable[[], V]) -> V:
    """Declare a field that is no setting, which `default_factory` makes where nobody says it."""
    return cast(V, Beside(default_factory))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(beside,))
def settings(cls: type[C]) -> type[C]:
    """Declare a table of settings; one that is read by `read_settings`."""
    for name, common in COMMON.items():
        if name not in vars(cls):
            setattr(cls, name, common)
    return cls


def changed(table: C, **said: Any) -> C:
    """A copy with these fields as given, checked as a new one is."""
    shape = shape_of(type(table))
    before = {name: getattr(table, name) for name in (*shape.settings, *shape.beside)}
    return type(table)(**before | said)


def shape_of(cls: type[Any]) -> Shape:
    return looked_at(cast(Hashable, cls))


@cache
def looked_at(cls: Hashable) -> Shape:
    """The bases' fields come first, as in a dataclass."""
    found: dict[str, Any] = {}
    for part in reversed(cast(type, cls).__mro__):
        found |= {name: vars(part).get(name, needed) for name in vars(part).get("__annotations__", ())}
    apart = {name: value.make for name, value in found.items() if isinstance(value, Beside)}
    own = {name: value for name, value in found.items() if name not in apart}
    return Shape(
        {name: value for name, value in own.items() if value is not needed},
        tuple(own),
        apart,
    )


def needed() -> None:
    """Stands where a default would."""


def fill(self: Any, **said: Any) -> None:
    """The fields as said, or by default; TypeError for one that is unknown or missing."""
    shape = shape_of(type(self))
    if unknown := said.keys() - shape.settings - shape.beside.keys():
        raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
    if missing := set(shape.settings) - shape.defaults.keys() - said.keys():
        raise TypeError(f"{type(self).__name__} needs {', '.join(sorted(missing))}")
    made = {name: make() for name, make in shape.beside.items() if name not in said}
    vars(self).update(shape.defaults | made | said)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def refuse(self: Any, name: str, value: object = None) -> None:
    raise AttributeError(f"{type(self).__name__}.{name} stays as it is; make another with changed()")


def is_same(self: Any, other: object) -> bool:
    """Of one class, with the same in each setting."""
    return NotImplemented if type(other) is not type(self) else values_of(self) == values_of(other)


def digest(self: Any) -> int:
    return hash(values_of(self))


def values_of(table: Any) -> tuple[Any, ...]:
    return tuple([getattr(table, name) for name in shape_of(type(table)).settings])


def shown(self: Any) -> str:
    """As a call that makes it."""
    said = zip(shape_of(type(self)).settings, values_of(self), strict=True)
    return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in said)})"


COMMON: dict[str, Any] = {
    "__init__": fill,
    "__setattr__": refuse,
    "__delattr__": refuse,
    "__eq__": is_same,
    "__hash__": digest,
    "__repr__": shown,
}
