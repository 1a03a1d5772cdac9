"""The error codes of a response, at any depth.

Which fields of a response lead to error codes is found once for each class, so the many fields without any cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, get_args, get_type_hints

from msgspec import Struct

FIELD = "error_code"


class ErrorFields(NamedTuple):
    """The fields of a class that have error codes."""

    has_code: bool
    nested: tuple[str, ...]
    """Fields with structs or sequences of structs that have error codes."""


def error_codes(response: Any) -> Iterator[int]:
    """Yield every error code but 0 in a response."""
    if isinstance(response, list | tuple):
        for item in response:
            yield from error_codes(item)
    elif isinstance(response, Struct):
        has_code, nested = find_error_fields(type(response))
        if has_code and (code := getattr(response, FIELD)):
            yield code
        for name in nested:
            yield from error_codes(getattr(response, name))


@cache
def find_error_fields(kind: type[Struct]) -> ErrorFields:
    """Return the fields of a class that have error codes, or lead to them. No message contains itself."""
    hints = get_type_hints(kind)
    nested = [
        name
        for name in kind.__struct_fields__
        if any(any(find_error_fields(inner)) for inner in find_structs(hints[name]))
    ]
    return ErrorFields(FIELD in kind.__struct_fields__, tuple(nested))


def find_structs(hint: Any) -> Iterator[type[Struct]]:
    """Yield the structs in a type."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for argument in get_args(hint):
        yield from find_structs(argument)
