"""Settings: a class declares their names, types, defaults and documentation.

 A field `linger_ms: int = 5` with a docstring under it declares the Kafka name `linger.ms`, the keyword `linger_ms`, a
type, a default and the documentation. `read_settings` creates an instance from a dict of dotted names and from
keywords, and raises clear errors for invalid ones.
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
"""The default of a mandatory option."""
EXAMPLES = {"bootstrap.servers": "localhost:9092"}
"""Values for the errors about missing or unreadable settings."""
TRUE = {"true", "yes", "on", "1"}
FALSE = {"false", "no", "off", "0"}


class Between(Struct, frozen=True):
    """Bounds of a number, both included; None is no bound. Used in `Annotated[int, Between(0)]`."""

    least: float | None = None
    most: float | None = None

    def check(self, name: str, value: float) -> None:
        """Raise ConfigError if `value` is outside the bounds."""
        if self.least is not None and value < self.least:
            raise ConfigError(f"{name} = {value}: must be at least {format_bound(self.least)}")
        if self.most is not None and value > self.most:
            raise ConfigError(f"{name} = {value}: must be at most {format_bound(self.most)}")


def format_bound(bound: float) -> float:
    """Return a whole number as int. `Between(0, 1)` equals `Between(0.0, 1.0)`, and `typing` caches the first one."""
    return int(bound) if bound == int(bound) else bound


class Password:
    """A secret: it can be compared and copied, but is never printed."""

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
    """One setting as declared by its class."""

    field: str
    """The keyword, such as `linger_ms`."""
    name: str
    """Kafka's dotted name, such as `linger.ms`."""
    type: Any
    default: Any
    owner: type

    @property
    def doc(self) -> str:
        """The documentation of the field; read from the source on demand."""
        return prose(self.owner).get(self.field, "")


def read_settings(cls: type[C], settings: Mapping[str, Any] | None = None, /, **keywords: Any) -> C:
    """Return an instance of `cls` from dotted names and snake_case keywords.

     Text is converted to the declared type. Raises ConfigError for an unknown name ("did you mean"), a value of the
    wrong type or out of bounds, or a name given both ways.
    """
    if not isinstance(settings, Mapping | None):
        raise ConfigError(f"settings = {settings!r}: must be a dict, or keyword arguments")
    table = {option.field: option for option in options_of(cls)}
    given: dict[str, Any] = {}
    for name, value in [*(settings or {}).items(), *keywords.items()]:
        option = table.get(str(name).replace(".", "_"))
        if option is None:
            raise ConfigError(unknown("setting", name, known_names(table.values(), name)))
        if option.field in given:
            raise ConfigError(f"{option.name} is given twice: give it once")
        given[option.field] = convert(option.name, value, option.type)
    for option in table.values():
        if option.field not in given and option.default is MISSING:
            example = f", such as {EXAMPLES[option.name]}" if option.name in EXAMPLES else ""
            raise ConfigError(f"{option.name} is required{example}")
    return cls(**given)


def refuse_credentials(name: str, addresses: Iterable[str], remedy: str) -> None:
    """Raise ConfigError for addresses such as `user:password@host:9092`.

    The error contains only the part after the `@`.
    """
    given = list(addresses)
    if any("@" in address for address in given):
        # A comma in a password splits it into several addresses, so those without `@` are hidden too.
        shown = ",".join(f"***@{address.rpartition('@')[2]}" if "@" in address else "***" for address in given)
        raise ConfigError(f"{name} = {shown!r}: an address must have no user and password; {remedy}")


def known_names(options: Iterable[Option], like: object) -> list[str]:
    """Return the names for suggestions, in the user's spelling."""
    dotted = "." in str(like)
    return [option.name if dotted else option.field for option in options]


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the error text for an unknown name, with a similar known one if possible."""
    import difflib  # imported only for errors

    close = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.6)
    return f"unknown {kind} {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")


def unknown_among(kind: str, name: object, known: Iterable[str], there: str) -> str:
    """Return the error text of `unknown`, followed by the known names in `there`."""
    text = unknown(kind, name, known)
    return f"{text}{' There' if text.endswith('?') else '; there'} are {there}"


def options_of(cls: type[Any]) -> tuple[Option, ...]:
    """Return the settings that `cls` declares, in order."""
    return declared_options(typing.cast(Hashable, cls))


@cache
def declared_options(cls: Hashable) -> tuple[Option, ...]:
    """Return the settings of a class; cached, because resolving the types is slow."""
    cls = typing.cast(type, cls)
    hints = typing.get_type_hints(cls, include_extras=True)
    shape = shape_of(cls)
    return tuple(
        Option(name, name.replace("_", "."), hints[name], shape.defaults.get(name, MISSING), cls)
        for name in shape.settings
    )


@cache
def prose(cls: Hashable) -> dict[str, str]:
    """Return the docstrings of the fields of `cls`, including its base classes."""
    texts: dict[str, str] = {}
    for part in reversed(typing.cast(type, cls).__mro__[:-1]):
        texts.update(own_prose(part))
    return texts


@cache
def own_prose(cls: Hashable) -> dict[str, str]:
    """Return the docstrings of the fields that `cls` itself declares; cached, since classes share long base classes."""
    import ast  # imported only for documentation
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
    """Convert `value` to the declared type; raise ConfigError with the setting, the value and the expectation."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return converted_within_bounds(name, value, args)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        return convert(name, value, next(arg for arg in args if arg is not type(None)))
    if origin is Literal:
        return to_choice(name, value, args)
    if origin is tuple:
        return tuple(convert(name, part, args[0]) for part in to_list(name, value))
    if origin is Callable and not callable(value):
        raise ConfigError(f"{name} = {value!r}: must be a function")
    converter = CONVERTERS.get(hint)
    return converter(name, value) if converter else value


def converted_within_bounds(name: str, value: Any, args: tuple[Any, ...]) -> Any:
    """Convert to the type of `Annotated[type, Between(...), ...]`, then check each bound."""
    converted = convert(name, value, args[0])
    for rule in args[1:]:
        if isinstance(rule, Between) and converted is not None:
            rule.check(name, converted)
    return converted


def to_list(name: str, value: Any) -> list[Any]:
    """Return several values, from text with commas or from an iterable."""
    if isinstance(value, str):
        return split_list(value)
    if isinstance(value, Iterable):
        return list(value)
    example = f", such as {EXAMPLES[name]}" if name in EXAMPLES else ""
    raise ConfigError(f"{name} = {value!r}: must be a list{example}")


def split_list(text: str) -> list[str]:
    """Return the values of a list with commas, without empty ones."""
    return [part.strip() for part in text.split(",") if part.strip()]


def to_choice(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """Return the matching choice; compared as text, so that `acks=1` and `acks="1"` are the same."""
    for candidate in allowed:
        if str(value).lower() == str(candidate).lower():
            return candidate
    raise ConfigError(f"{name} = {value!r}: must be one of {', '.join(map(str, allowed))}")


def to_int(name: str, value: Any) -> int:
    """Convert to a whole number; a bool is rejected."""
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
    """Convert to a bool, also from text."""
    text = str(value).lower()
    if text in TRUE or text in FALSE:
        return text in TRUE
    raise ConfigError(f"{name} = {value!r}: must be true or false")


def to_str(name: str, value: Any) -> str:
    """Return text unchanged; reject other types."""
    if isinstance(value, str):
        return value
    raise ConfigError(f"{name} = {value!r}: must be text")


def to_password(name: str, value: Any) -> Password:
    """Convert to a Password; errors do not contain the value."""
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
