"""The declarations of messages.

 A message is one class for all its versions, created as a `msgspec.Struct`. A field exists in every version unless
`since` or `tagged` restrict it; `X | None` is nullable; the field order is the wire order. Every field has a default; a
version without the field reads as that default.
"""

from __future__ import annotations

import types
import typing
import uuid
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, dataclass_transform

from msgspec import Struct, StructMeta, field, structs

OPEN_ENDED = 32767
"""The last possible version."""
ZERO_UUID = uuid.UUID(int=0)
"""Kafka's value for "no id"."""


class Wire(NamedTuple):
    """The wire type of an annotation; the name is a key of `codec.KINDS`."""

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
"""Decoded as a memoryview of the frame, encoded from one or several `Part`, so that no single type fits both."""
Uuid = Annotated[uuid.UUID, Wire("uuid")]


class Range(NamedTuple):
    """A range of versions, both ends included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Range:
        """Parse Kafka's notation: `0-13`, `9+`, `4`, `none`."""
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
    """The properties of every request, response and record schema; set by `@message`."""

    __slots__ = ()

    KEY: ClassVar[int]
    VERSIONS: ClassVar[Range]
    FLEXIBLE: ClassVar[Range]


C = TypeVar("C")
M = TypeVar("M", bound=Message)


class Field(NamedTuple):
    name: str
    type: Any
    """Its type, without `| None`."""
    versions: Range
    nullable: Range
    """The versions in which None may be encoded and decoded."""
    tag: int | None
    default: Any
    """None for a `part`, which exists in every version."""
    ignorable: bool
    """True if a value may be dropped silently in a version without the field."""
    marked: bool
    """True if a tagged struct encodes whether it is null."""


class Special(NamedTuple):
    """The declaration by `since` or `tagged`."""

    default: Any
    versions: Range
    nullable_since: int | None
    tag: int | None
    ignorable: bool
    marked: bool = False


USUAL = Special(None, ALWAYS, None, None, False)
SPECIAL: dict[type, dict[str, Special]] = {}
"""The special declarations of the fields of each class."""


def since(
    first: int, *, default: Any, until: int = OPEN_ENDED, nullable_since: int | None = None, ignorable: bool = False
) -> Any:
    """Declare a field that exists from version `first` until `until`.

    `nullable_since` is for an `X | None` that became nullable later.
    """
    return Special(default, Range(first, until), nullable_since, None, ignorable)


def tagged(tag: int, *, since: int, default: Any, ignorable: bool = False, marked: bool = False) -> Any:
    """Declare a tagged field (KIP-482), which is encoded only if it differs from its default.

     A tagged struct is declared `X | None` with default None: None is omitted, never encoded as null. A `marked` one is
    always encoded, with a preceding number that says whether it is null, since its absence has another meaning.
    """
    return Special(default, Range(since, OPEN_ENDED), None, tag, ignorable, marked)


def part(cls: type[C]) -> Any:
    """Declare a struct that always exists, with default values."""
    return field(default_factory=cls)


@dataclass_transform(field_specifiers=(since, tagged))
def struct(cls: type[C]) -> type[C]:
    """Declare a struct of messages; its message defines the flexible versions."""
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    special = {name: value for name, value in body.items() if isinstance(value, Special)}
    defaults = {name: said.default for name, said in special.items()}
    made = StructMeta(cls.__name__, (*(base for base in cls.__bases__ if base is not object), Struct), body | defaults)
    SPECIAL[made] = special
    return typing.cast(type[C], made)


@dataclass_transform(field_specifiers=(since, tagged))
def message(*, key: int, versions: str, flexible: str = "none") -> Callable[[type[M]], type[M]]:
    """Declare a request, a response, or the schema of a record."""

    def declare(cls: type[M]) -> type[M]:
        made = struct(cls)
        made.KEY, made.VERSIONS, made.FLEXIBLE = key, Range.parse(versions), Range.parse(flexible)
        return made

    return declare


def replace(made: C, **changes: Any) -> C:
    """Return a copy of a message or struct with changed fields."""
    return typing.cast(C, structs.replace(typing.cast(Struct, made), **changes))


def fields(cls: Any) -> Iterator[Field]:
    """Yield the fields of a declared class in wire order."""
    hints = typing.get_type_hints(cls, include_extras=True)
    for name, given in zip(cls.__struct_fields__, cls.__struct_defaults__, strict=True):
        said = SPECIAL[cls].get(name, USUAL)
        inner, optional = unwrap(hints[name])
        null_from = said.versions.first if said.nullable_since is None else said.nullable_since
        nullable = Range(null_from, OPEN_ENDED) if optional else NEVER
        default = None if isinstance(inner, type) else given  # a part is created on demand
        yield Field(name, inner, said.versions, nullable, said.tag, default, said.ignorable, said.marked)


def unwrap(hint: Any) -> tuple[Any, bool]:
    """Split `X | None` into X and true if None is allowed."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (inner,) = (arg for arg in typing.get_args(hint) if arg is not type(None))
        return inner, True
    return hint, False
