"""Parse lines of standard input as records: values, keys and values, or the JSON of `ottla consume`."""

from __future__ import annotations

import base64
import csv
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click

from ottla.cli.options import usage_error

Lines = Iterable[tuple[int, bytes]]
Headers = tuple[tuple[str, bytes | None], ...]
LAST_MS, LAST_PARTITION = 2**63 - 1, 2**31 - 1
"""The largest values of the protocol."""
MOST_CELL_BYTES = 2**31 - 1
KNOWN = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class RecordLine(NamedTuple):
    """The record of a line."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int | None = None


def of_text(lines: Lines, key_separator: str | None, null_marker: str | None) -> Iterator[RecordLine]:
    """Yield key and value of each line."""
    separator = None if key_separator is None else os.fsencode(key_separator)
    null = None if null_marker is None else os.fsencode(null_marker)
    for number, line in lines:
        key, value = None, line.removesuffix(b"\n").removesuffix(b"\r")
        if separator is not None:
            key, found, value = value.partition(separator)
            if not found:
                raise click.ClickException(f"line {number} of standard input has no key separator {key_separator!r}")
        yield RecordLine(None if key == null else key, None if value == null else value)


def of_json(lines: Lines) -> Iterator[RecordLine]:
    """Yield the record of each line; its `topic` and `offset` are ignored."""
    for number, line in lines:
        try:
            yield line_of(json.loads(line))
        except (ValueError, TypeError, RecursionError) as error:
            why = f"{error.msg}, at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else error
            raise click.ClickException(
                f'line {number} of standard input is not a record in JSON, such as {{"key": "a", "value": "b"}}: {why}'
            ) from None


def of_csv(lines: Lines, null_marker: str | None) -> Iterator[RecordLine]:
    """Yield the record of each row after the header row; the columns are those of JSON, `value` is mandatory."""
    csv.field_size_limit(MOST_CELL_BYTES)  # Python's limit is 128 KiB; the length of a line is checked when it is read
    numbers: list[int] = [1]
    rows = csv.reader(texts_of(lines, numbers), strict=True)
    columns: list[str] | None = None
    try:
        for row in rows:
            if columns is None:
                columns = checked_columns(row)
            elif row:
                yield line_of(fields_of(columns, row, null_marker))
    except (ValueError, TypeError, RecursionError, csv.Error) as error:
        raise click.ClickException(
            f"line {numbers[-1]} of standard input is not a CSV row, such as a,b below key,value: {error}"
        ) from None


def texts_of(lines: Lines, numbers: list[int]) -> Iterator[str]:
    """Yield the lines as text that preserves their bytes; `numbers` has the number of the last line."""
    for number, line in lines:
        numbers[:] = [number]
        yield os.fsdecode(line)


def checked_columns(names: list[str]) -> list[str]:
    """Return the column names of the first row; raise ValueError if they are invalid."""
    if strange := [name for name in names if name not in KNOWN]:
        raise ValueError(f"unknown column {strange[0]!r} in the first row, there are {', '.join(KNOWN)}")
    if "value" not in names or len(set(names)) < len(names):
        raise ValueError("the first row must name the columns, each once, with value among them")
    return names


def fields_of(columns: list[str], row: list[str], null_marker: str | None) -> dict[str, Any]:
    """Return a row as a JSON object; an empty number or empty headers are omitted."""
    if len(row) != len(columns):
        raise ValueError(f"it has {len(row)} cells where the first row has {len(columns)}")
    fields: dict[str, Any] = {}
    for name, cell in zip(columns, row, strict=True):
        if name in ("key", "value"):
            fields[name] = None if cell == null_marker else {"base64": base64.b64encode(os.fsencode(cell)).decode()}
        elif cell and name in ("timestamp", "partition", "headers"):
            fields[name] = json.loads(cell)
    return fields


def line_of(fields: Any) -> RecordLine:
    """Return the record of a JSON object."""
    if not isinstance(fields, dict) or "value" not in fields:
        raise ValueError('it must be an object with "value", null for a tombstone')
    if strange := [name for name in fields if name not in KNOWN]:
        raise ValueError(f"unknown field {strange[0]!r}, there are {', '.join(KNOWN)}")
    headers = fields.get("headers") or []
    pairs = list(headers.items()) if isinstance(headers, dict) else [(name, value) for name, value in headers]
    return RecordLine(
        bytes_of("key", fields.get("key")),
        bytes_of("value", fields["value"]),
        tuple((checked_name(name), bytes_of("a header", value)) for name, value in pairs),
        number_of("timestamp", fields.get("timestamp"), LAST_MS),
        number_of("partition", fields.get("partition"), LAST_PARTITION),
    )


def bytes_of(what: str, value: Any) -> bytes | None:
    """Return the bytes of a value: text as UTF-8, {"base64": "..."} decoded, null as None."""
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
    """Return the headers of `--header name=value`; a name may be repeated."""
    pairs = [text.partition("=") for text in texts]
    for name, equals, value in pairs:
        if not equals or not name or not name.isprintable():
            raise usage_error(f"invalid value {name + equals + value!r} for --header: expected NAME=VALUE")
    return tuple((name, os.fsencode(value)) for name, _, value in pairs)
