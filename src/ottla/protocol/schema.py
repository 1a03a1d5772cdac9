"""The words messages are declared in.

A message is one dataclass for all its versions. A field is there in every version unless `since` or
`tagged` say otherwise; `X | None` may be null; field order is wire order. Every field has a default, and
a version that lacks a field reads as that default.
"""

from __future__ import annotations

import dataclasses
import types
import typing
import uuid
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, dataclass_transform

OPEN_ENDED = 32767
"""The last version there can be."""
ZERO_UUID = uuid.UUID(int=0)
"""Kafka's "no id"."""


@dataclasses.dataclass(frozen=True)
class Wire:
    """The wire type an annotation stands for; the name is a key of `codec.KINDS`."""

    name: str


Bool = Annotated[bool, Wire("bool")]
Int8 = Annotated[int, Wire("int8")]
Int16 = Annotated[int, Wire("int16")]
Int32 = Annotated[int, Wire("int32")]
Int64 = Annotated[int, Wire("int64")]
UInt16 = Annotated[int, Wire("uint16")]
UInt32 = Annotated[int, Wire("uint32")]
Float64 = Annotated[float, Wire("float64")]
String = Annotated[str, Wire("string")]
Bytes = Annotated[bytes, Wire("bytes")]
Records = Annotated[Any, Wire("records")]
"""Reads as a memoryview into the frame; is written from a `Part` or several, so no one type is both."""
Uuid = Annotated[uuid.UUID, Wire("uuid")]


class Range(NamedTuple):
    """A span of versions, both ends included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Range:
        """Kafka's notation: `0-13`, `9+`, `4`, `none`."""
        if text == "none":
            return NEVER
        if text.endswith("+"):
            return cls(int(text[:-1]), OPEN_ENDED)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


NEVER = Range(OPEN_ENDED, -1)
ALWAYS = Range(0, OPEN_ENDED)


class Message:
    """What every request, response and record schema knows of itself; set by `@message`."""

    __slots__ = ()

    KEY: ClassVar[int]
    VERSIONS: ClassVar[Range]
    FLEXIBLE: ClassVar[Range]


C = TypeVar("C")
M = TypeVar("M", bound=Message)


class Field(NamedTuple):
    name: str
    type: Any
    """What it holds, without `| None`."""
    versions: Range
    nullable: Range
    """In which versions None may be written and read."""
    tag: int | None
    default: Any
    """None for a `part`, which is there in every version."""
    ignorable: bool
    """Whether a value may be dropped silently in a version without the field."""


def since(
    first: int, *, default: Any, until: int = OPEN_ENDED, nullable_since: int | None = None, ignorable: bool = False
) -> Any:
    """A field that appears in version `first` and stays until `until`.

    `nullable_since` is for an `X | None` that was not nullable from the first.
    """
    metadata = {"versions": Range(first, until), "nullable_since": nullable_since, "ignorable": ignorable}
    return dataclasses.field(default=default, metadata=metadata)


def tagged(tag: int, *, since: int, default: Any, ignorable: bool = False) -> Any:
    """A field that travels in the tag section, and only when it differs from its default.

    A tagged struct is declared `X | None` with default None: None is "not sent", never a null on the wire.
    """
    metadata = {"versions": Range(since, OPEN_ENDED), "tag": tag, "ignorable": ignorable}
    return dataclasses.field(default=default, metadata=metadata)


def part(cls: type[C]) -> Any:
    """A struct that is always there, and says nothing until something is put into it."""
    return dataclasses.field(default_factory=cls)


@dataclass_transform(field_specifiers=(since, tagged))
def struct(cls: type[C]) -> type[C]:
    """Declare a part of messages; in which versions it is flexible, its message says."""
    # A dataclass without a text is given its signature as one: a third of what it costs to declare it.
    cls.__doc__ = cls.__doc__ or cls.__name__
    # And what it is compared and shown by would be compiled for each: half of the rest. One with secrets has its own words.
    for name, common in COMMON.items():
        if name not in cls.__dict__:
            setattr(cls, name, common)
    return dataclasses.dataclass(slots=True, eq=False, repr=False)(cls)


def is_same(self: Any, other: object) -> bool:
    """Of one class, with the same in each field."""
    return NotImplemented if other.__class__ is not self.__class__ else values_of(self) == values_of(other)


def shown(self: Any) -> str:
    """As a call that makes it."""
    fields = zip(self.__match_args__, values_of(self), strict=True)
    return f"{self.__class__.__qualname__}({', '.join(f'{name}={value!r}' for name, value in fields)})"


def values_of(made: Any) -> tuple[Any, ...]:
    return tuple([getattr(made, name) for name in made.__match_args__])


COMMON = {"__eq__": is_same, "__repr__": shown, "__hash__": None}
"""What every struct has; it may change, and so has no hash."""


@dataclass_transform(field_specifiers=(since, tagged))
def message(*, key: int, versions: str, flexible: str = "none") -> Callable[[type[M]], type[M]]:
    """Declare a request, a response, or the schema of a record."""

    def declare(cls: type[M]) -> type[M]:
        made = struct(cls)
        made.KEY, made.VERSIONS, made.FLEXIBLE = key, Range.parse(versions), Range.parse(flexible)
        return made

    return declare


def fields(cls: type) -> Iterator[Field]:
    """The fields of a declared class, in wire order."""
    hints = typing.get_type_hints(cls, include_extras=True)
    for declared in dataclasses.fields(cls):
        inner, optional = unwrap(hints[declared.name])
        meta = declared.metadata
        versions = meta.get("versions", ALWAYS)
        null_from = meta.get("nullable_since")
        nullable = Range(versions.first if null_from is None else null_from, OPEN_ENDED) if optional else NEVER
        default = None if declared.default is dataclasses.MISSING else declared.default
        ignorable = meta.get("ignorable", False)
        yield Field(declared.name, inner, versions, nullable, meta.get("tag"), default, ignorable)


def unwrap(hint: Any) -> tuple[Any, bool]:
    """Split `X | None` into X and whether None is allowed."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (inner,) = (arg for arg in typing.get_args(hint) if arg is not type(None))
        return inner, True
    return hint, False
