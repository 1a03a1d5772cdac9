"""An answer that says an error for all that a request names, made from the shapes of the two messages.

request                            answer
topics ─ name, partitions ─ index  ──►  responses ─ name, partition_responses ─ index, error_code
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast, get_args, get_origin

from msgspec import Struct, StructMeta
from msgspec.structs import asdict

from ottla.protocol.schema import Field, Message, fields

BELOW_ONLY = ("FetchResponse",)
"""Whose error at the top is about its session alone."""
CALLED_ALSO = {"partition_index": ("partition", "index"), "index": ("partition_index",)}
"""How requests call what their answers name otherwise."""


def refusal(request: Message, answer: type[Message], version: int, code: int) -> Message:
    """The answer to a request of which everything is refused."""
    made = answered(request, answer, version, code)
    if answer.__name__ in BELOW_ONLY and any(each is not made for each in carriers(made)):
        made.error_code = 0
    return cast(Message, made)


def answered(asked: Any, cls: type[Any], version: int, code: int) -> Any:
    """What answers one part of a request, as far as the version has it."""
    made = cls()
    for field in fields(cls):
        item = item_of(field)
        if version not in field.versions:
            continue
        if field.name == "error_code":
            made.error_code = code
        elif item is None:
            copy_named(asked, made, field.name)
        elif carries_error(item):
            setattr(made, field.name, [answered(each, item, version, code) for each in asked_in(asked, field.name)])
    return made


def copy_named(asked: Any, made: Any, name: str) -> None:
    """An answer's field from the request's of that name, or from a plain value that names the thing."""
    if isinstance(asked, str):
        if name in ("key", "group_id", "name"):
            setattr(made, name, asked)
        return
    found = next((each for each in (name, *CALLED_ALSO.get(name, ())) if hasattr(asked, each)), None)
    if found is not None:
        setattr(made, name, getattr(asked, found))


def asked_in(asked: Any, name: str) -> Sequence[Any]:
    """What stands in the request for a sequence in the answer: what is called alike, or the first that has anything."""
    if not isinstance(asked, Struct):
        return ()
    there = asdict(asked)
    lists = {key: value for key, value in there.items() if isinstance(value, list | tuple) and value}
    return lists.get(name) or next((value for value in lists.values() if not isinstance(value[0], int)), ())


def item_of(field: Field) -> type[Any] | None:
    """The struct that a field is a sequence of."""
    item = get_args(field.type)[0] if get_origin(field.type) is Sequence else None
    return item if isinstance(item, StructMeta) else None


def carries_error(cls: type[Any]) -> bool:
    """Whether there is room for an error in a message, or somewhere below."""
    below = (item_of(field) for field in fields(cls))
    return hasattr(cls, "error_code") or any(item is not None and carries_error(item) for item in below)


def carriers(made: Any) -> Iterator[Any]:
    """Every place in an answer that has an error code, itself too."""
    if isinstance(made, list | tuple):
        for each in made:
            yield from carriers(each)
    elif isinstance(made, Struct):
        if hasattr(made, "error_code"):
            yield made
        for name in made.__struct_fields__:
            yield from carriers(getattr(made, name))
