"""Lines of standard input as records: a value each, a key and a value, or JSON as `ottla consume` prints it."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click

from ottla.cli.options import senseless

Lines = Iterable[tuple[int, bytes]]
Headers = tuple[tuple[str, bytes | None], ...]
LAST_MS, LAST_PARTITION = 2**63 - 1, 2**31 - 1
"""What the protocol has room for."""
KNOWN = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class Line(NamedTuple):
    """A record that a line stands for."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None


def of_text(lines: Lines, key_separator: str | None, null_marker: str | None) -> Iterator[Line]:
    """Key and value of each line."""
    separator = None if key_separator is None else os.fsencode(key_separator)
    null = None if null_marker is None else os.fsencode(null_marker)
    for number, line in lines:
        key, value = None, line.removesuffix(b"\n").removesuffix(b"\r")
        if separator is not None:
            key, found, value = value.partition(separator)
            if not found:
                raise click.ClickException(f"line {number} of standard input has no key separator {key_separator!r}")
        yield Line(None if key == null else key, None if value == null else value)


def of_json(lines: Lines) -> Iterator[Line]:
    """The record of each line; `topic` and `offset` are where it came from, and are left alone."""
    for number, line in lines:
        try:
            yield line_of(json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            raise click.ClickException(
                f'line {number} of standard input is no record in JSON, such as {{"key": "a", "value": "b"}}: {error}'
            ) from None


def line_of(fields: Any) -> Line:
    """A record from its JSON object."""
    if not isinstance(fields, dict) or "value" not in fields:
        raise ValueError('it must be an object with "value", null for a tombstone')
    if strange := [name for name in fields if name not in KNOWN]:
        raise ValueError(f"unknown field {strange[0]!r}, there are {', '.join(KNOWN)}")
    headers = fields.get("headers") or []
    pairs = list(headers.items()) if isinstance(headers, dict) else [(name, value) for name, value in headers]
    return Line(
        bytes_of("key", fields.get("key")),
        bytes_of("value", fields["value"]),
        tuple((checked_name(name), bytes_of("a header", value)) for name, value in pairs),
        number_of("timestamp", fields.get("timestamp"), LAST_MS),
        number_of("partition", fields.get("partition"), LAST_PARTITION),
    )


def bytes_of(what: str, value: Any) -> bytes | None:
    """Text as UTF-8, {"base64": "..."} as its bytes, null as nothing."""
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return base64.b64decode(value["base64"], validate=True)
    raise ValueError(f'{what} must be text, null or {{"base64": "..."}}, not {json.dumps(value)[:40]}')


def checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a header must be text, not {json.dumps(name)[:40]}")
    return name


def number_of(what: str, value: Any, last: int) -> int | None:
    if value is not None and (type(value) is not int or not 0 <= value <= last):
        raise ValueError(f"{what} must be a whole number from 0 to {last}, not {json.dumps(value)[:40]}")
    return value


def headers_of(texts: Iterable[str]) -> Headers:
    """`--header name=value`, as often as it is given; a name may come twice."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, value in pairs:
        if not equals or not name or not name.isprintable():
            raise senseless(f"--header {name + equals + value!r} must be NAME=VALUE")
    return tuple((name, os.fsencode(value)) for name, _, value in pairs)
