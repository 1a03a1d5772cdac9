"""The class decorator `@settings` for a class with one field per setting.

 Instances are immutable and have only keyword arguments, like a frozen dataclass. `dataclass` generates and compiles
methods in proportion to the number of fields, which took a thirtieth of a broker's start with its hundred and fifty
settings. Here all classes share the same methods, which use the fields at runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast, dataclass_transform

C = TypeVar("C")
V = TypeVar("V")


class Beside(NamedTuple):
    """A field that is not a setting: each instance has its own value, which is neither compared nor shown."""

    make: Callable[[], Any]


class Shape(NamedTuple):
    """The fields of a settings class."""

    defaults: dict[str, Any]
    """Default values of optional settings."""
    settings: tuple[str, ...]
    """All settings in the order of declaration."""
    beside: dict[str, Callable[[], Any]]


def beside(*, default_factory: Callable[[], V]) -> V:
    """Declare a field that is not a setting; `default_factory` creates its value if none is given."""
    return cast(V, Beside(default_factory))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(beside,))
def settings(cls: type[C]) -> type[C]:
    """Declare a settings class, to be read by `read_settings`."""
    for name, common in COMMON.items():
        if name not in vars(cls):
            setattr(cls, name, common)
    return cls


def changed(table: C, **said: Any) -> C:
    """Return a copy with changed fields, checked as a new instance."""
    shape = shape_of(type(table))
    before = {name: getattr(table, name) for name in (*shape.settings, *shape.beside)}
    return type(table)(**before | said)


def shape_of(cls: type[Any]) -> Shape:
    return looked_at(cast(Hashable, cls))


@cache
def looked_at(cls: Hashable) -> Shape:
    """Return the fields; those of base classes first, as in a dataclass."""
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
    """Mark a setting without a default."""


def fill(self: Any, **said: Any) -> None:
    """Set the fields from arguments and defaults; raise TypeError for an unknown or a missing one."""
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
    raise AttributeError(f"{type(self).__name__}.{name} is immutable: create a copy with changed()")


def is_same(self: Any, other: object) -> bool:
    """Return true for an instance of the same class with equal settings."""
    return NotImplemented if type(other) is not type(self) else values_of(self) == values_of(other)


def digest(self: Any) -> int:
    return hash(values_of(self))


def values_of(table: Any) -> tuple[Any, ...]:
    return tuple([getattr(table, name) for name in shape_of(type(table)).settings])


def shown(self: Any) -> str:
    """Return the expression that creates it."""
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
