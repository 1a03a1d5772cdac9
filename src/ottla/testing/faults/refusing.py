"""Build a response with an error for everything that a request names, from the schemas of both messages.

request                            response
topics ─ name, partitions ─ index  ──►  responses ─ name, partition_responses ─ index, error_code
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast, get_args, get_origin

from msgspec import Struct, StructMeta
from msgspec.structs import asdict

from ottla.protocol.schema import Field, Message, fields

BELOW_ONLY = ("FetchResponse",)
"""Responses with a top-level error that is only about their session."""
CALLED_ALSO = {"partition_index": ("partition", "index"), "index": ("partition_index",)}
"""Field names of requests by the different names in their responses."""


def build_refusal(request: Message, answer: type[Message], version: int, code: int) -> Message:
    """Return the response to a request with an error for each of its parts."""
    made = build_response(request, answer, version, code)
    if answer.__name__ in BELOW_ONLY and any(each is not made for each in carriers(made)):
        made.error_code = 0
    return cast(Message, made)


def build_response(request: Any, cls: type[Any], version: int, code: int) -> Any:
    """Return the response to one part of a request, with the fields of the version."""
    made = cls()
    for field in fields(cls):
        item = item_of(field)
        if version not in field.versions:
            continue
        if field.name == "error_code":
            made.error_code = code
        elif item is None:
            copy_identifier(request, made, field.name)
        elif carries_error(item):
            setattr(
                made,
                field.name,
                [build_response(each, item, version, code) for each in request_items(request, field.name)],
            )
    return made


def copy_identifier(request: Any, made: Any, name: str) -> None:
    """Copy a field from the request's field of that name, or from a plain value that is the name itself."""
    if isinstance(request, str):
        if name in ("key", "group_id", "name"):
            setattr(made, name, request)
        return
    found = next((each for each in (name, *CALLED_ALSO.get(name, ())) if hasattr(request, each)), None)
    if found is not None:
        setattr(made, name, getattr(request, found))


def request_items(request: Any, name: str) -> Sequence[Any]:
    """Return the request's sequence for a sequence of the response.

    It is the one of the same name, or the first non-empty one.
    """
    if not isinstance(request, Struct):
        return ()
    there = asdict(request)
    lists = {key: value for key, value in there.items() if isinstance(value, list | tuple) and value}
    return lists.get(name) or next((value for value in lists.values() if not isinstance(value[0], int)), ())


def item_of(field: Field) -> type[Any] | None:
    """Return the struct of a field that is a sequence of structs, or None."""
    item = get_args(field.type)[0] if get_origin(field.type) is Sequence else None
    return item if isinstance(item, StructMeta) else None


def carries_error(cls: type[Any]) -> bool:
    """Return true if a message or one of its parts has an error code."""
    below = (item_of(field) for field in fields(cls))
    return hasattr(cls, "error_code") or any(item is not None and carries_error(item) for item in below)


def carriers(made: Any) -> Iterator[Any]:
    """Yield every part of a response that has an error code, including the response itself."""
    if isinstance(made, list | tuple):
        for each in made:
            yield from carriers(each)
    elif isinstance(made, Struct):
        if hasattr(made, "error_code"):
            yield made
        for name in made.__struct_fields__:
            yield from carriers(getattr(made, name))
