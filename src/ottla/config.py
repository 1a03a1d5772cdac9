"""Settings: one class is the table that names, types, defaults and documents them.

A field `linger_ms: int = 5` with a docstring under it is the dotted Kafka name `linger.ms`, the keyword
`linger_ms`, a type, a default and the text that help and documentation print. `read_settings` fills such a
class from a dict of dotted names and from keywords, and says clearly what does not fit.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct

from ottla.errors import ConfigError
from ottla.settings_class import shape_of

C = TypeVar("C")
MISSING: Any = object()
"""The default of an option that somebody has to give."""
TRUE = {"true", "yes", "on", "1"}
FALSE = {"false", "no", "off", "0"}


class Between(Struct, frozen=True):
    """Bounds of a number, both ends included; None is no bound. Used in `Annotated[int, Between(0)]`."""

    least: float | None = None
    most: float | None = None

    def check(self, name: str, value: float) -> None:
        """Raise ConfigError where `value` lies outside."""
        if self.least is not None and value < self.least:
            raise ConfigError(f"{name} = {value}: must be at least {shown(self.least)}")
        if self.most is not None and value > self.most:
            raise ConfigError(f"{name} = {value}: must be at most {shown(self.most)}")


def shown(bound: float) -> float:
    """A whole number without a point. `Between(0, 1)` and `Between(0.0, 1.0)` are equal, and `typing` keeps whichever it met first."""
    return int(bound) if bound == int(bound) else bound


class Password:
    """A secret: it is compared, copied and handed on, and never shown."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "[hidden]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


class Option(NamedTuple):
    """One setting as its class declares it."""

    field: str
    """The keyword, such as `linger_ms`."""
    name: str
    """Kafka's dotted name, such as `linger.ms`."""
    type: Any
    default: Any
    owner: type

    @property
    def doc(self) -> str:
        """The text under the field; read from the source only when asked for."""
        return prose(self.owner).get(self.field, "")


def read_settings(cls: type[C], settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> C:
    """An instance of `cls` from dotted names and snake_case keywords.

    Text is converted to the declared type. Raises ConfigError for an unknown name ("did you mean"), a
    value of the wrong type or out of bounds, or a name given both ways.
    """
    if not isinstance(settings, Mapping | None):
        raise ConfigError(f"settings = {settings!r}: must be a dict; settings by keyword go without one")
    table = {option.field: option for option in options_of(cls)}
    given: dict[str, Any] = {}
    for name, value in [*(settings or {}).items(), *keywords.items()]:
        option = table.get(str(name).replace(".", "_"))
        if option is None:
            raise ConfigError(unknown("setting", name, known_names(table.values(), name)))
        if option.field in given:
            raise ConfigError(f"{option.name} is given twice; give it once")
        given[option.field] = convert(option.name, value, option.type)
    for option in table.values():
        if option.field not in given and option.default is MISSING:
            raise ConfigError(f"{option.name} is required")
    return cls(**given)


def refuse_credentials(name: str, addresses: Iterable[str], remedy: str) -> None:
    """Raise ConfigError for addresses such as `user:password@host:9092`; its text has only what follows the `@`."""
    given = list(addresses)
    if any("@" in address for address in given):
        # A comma in a password has cut it into several addresses: those without a mark are hidden, too.
        shown = ",".join(f"***@{address.rpartition('@')[2]}" if "@" in address else "***" for address in given)
        raise ConfigError(f"{name} = {shown!r}: an address must have no user and password; {remedy}")


def known_names(options: Iterable[Option], like: object) -> list[str]:
    """The names to suggest, spelled the way the user spells."""
    dotted = "." in str(like)
    return [option.name if dotted else option.field for option in options]


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """The sentence about a name nobody knows, with a suggestion where one is close."""
    import difflib  # for those who mistype

    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f"unknown {kind} {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")


def unknown_among(kind: str, name: object, known: Iterable[str], there: str) -> str:
    """The same, and what there is, as `there` says it."""
    told = unknown(kind, name, known)
    return f"{told}{' There' if told.endswith('?') else '; there'} are {there}"


def options_of(cls: type[Any]) -> tuple[Option, ...]:
    """The settings that `cls` declares, in order."""
    return declared(typing.cast(Hashable, cls))


@cache
def declared(cls: Hashable) -> tuple[Option, ...]:
    """The same, read once: resolving the types takes longer than all that is done with them."""
    cls = typing.cast(type, cls)
    hints = typing.get_type_hints(cls, include_extras=True)
    shape = shape_of(cls)
    return tuple(
        Option(name, name.replace("_", "."), hints[name], shape.defaults.get(name, MISSING), cls)
        for name in shape.settings
    )


@cache
def prose(cls: Hashable) -> dict[str, str]:
    """The docstring under each field of `cls`, its base classes' included."""
    texts: dict[str, str] = {}
    for part in reversed(typing.cast(type, cls).__mro__[:-1]):
        texts.update(own_prose(part))
    return texts


@cache
def own_prose(cls: Hashable) -> dict[str, str]:
    """The same of what `cls` itself declares; many share a base, whose module may be long."""
    import ast  # for those who read
    import inspect
    import textwrap

    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(typing.cast(type, cls))))
    except (OSError, TypeError):
        return {}
    texts: dict[str, str] = {}
    for node, after in pairwise(typing.cast(ast.ClassDef, tree.body[0]).body):
        match node, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts


def convert(name: str, value: Any, hint: Any) -> Any:
    """`value` as the declared type; ConfigError names the setting, the value and what was expected."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return converted_within_bounds(name, value, args)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        return convert(name, value, next(arg for arg in args if arg is not type(None)))
    if origin is Literal:
        return choice(name, value, args)
    if origin is tuple:
        return tuple(convert(name, part, args[0]) for part in listed(name, value))
    if origin is Callable and not callable(value):
        raise ConfigError(f"{name} = {value!r}: must be a function")
    converter = CONVERTERS.get(hint)
    return converter(name, value) if converter else value


def converted_within_bounds(name: str, value: Any, args: tuple[Any, ...]) -> Any:
    """`Annotated[type, Between(...), ...]`: convert, then check each bound."""
    converted = convert(name, value, args[0])
    for rule in args[1:]:
        if isinstance(rule, Between) and converted is not None:
            rule.check(name, converted)
    return converted


def listed(name: str, value: Any) -> list[Any]:
    """Several values, as text between commas or as a list."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable):
        return list(value)
    raise ConfigError(f"{name} = {value!r}: must be a list")


def choice(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """One of a fixed few, compared as text so that `acks=1` and `acks="1"` are the same."""
    for candidate in allowed:
        if str(value).lower() == str(candidate).lower():
            return candidate
    raise ConfigError(f"{name} = {value!r}: must be one of {', '.join(map(str, allowed))}")


def to_int(name: str, value: Any) -> int:
    """A whole number; a bool is not one."""
    try:
        if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
            raise ValueError
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{name} = {value!r}: must be a whole number") from None


def to_float(name: str, value: Any) -> float:
    try:
        number = float(value)
        if math.isnan(number):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{name} = {value!r}: must be a number") from None
    return number


def to_bool(name: str, value: Any) -> bool:
    """True or false, also as text."""
    text = str(value).lower()
    if text in TRUE or text in FALSE:
        return text in TRUE
    raise ConfigError(f"{name} = {value!r}: must be true or false")


def to_str(name: str, value: Any) -> str:
    """Text as it is; anything else is a mistake rather than its repr."""
    if isinstance(value, str):
        return value
    raise ConfigError(f"{name} = {value!r}: must be text")


def to_password(name: str, value: Any) -> Password:
    """Text that is not repeated, whatever is wrong with it."""
    if isinstance(value, Password):
        return value
    if isinstance(value, str):
        return Password(value)
    raise ConfigError(f"{name}: must be text")


CONVERTERS: dict[Any, Callable[[str, Any], Any]] = {
    int: to_int,
    float: to_float,
    bool: to_bool,
    str: to_str,
    Password: to_password,
}
