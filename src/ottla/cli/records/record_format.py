r"""Formats of printed records: value, key and value, JSON, CSV, or a format text as in kcat.

kcat's letters: %s value, %S its length, %k key, %K its length, %t topic, %p partition, %o offset, %T timestamp,
%h headers, %% a per cent sign; null is empty, and its length is -1; and \n, \r, \t, \\, \xNN. Nothing is appended.
"""

from __future__ import annotations

import base64
import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from typing import TYPE_CHECKING, Any

from ottla.cli.options import usage_error

if TYPE_CHECKING:
    from ottla.client.consumer import ConsumerRecord
    from ottla.records.columns import Columns

Render = Callable[["ConsumerRecord"], bytes]
TOKEN = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.)|[^%\\]+|\\", re.DOTALL)
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}
BLOCK_BYTES = 64 * 1024
"""The approximate number of bytes printed at once: small enough to stay in a processor's cache."""
CSV_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
LETTERS: dict[str, Render] = {
    "s": lambda record: record.value or b"",
    "S": lambda record: length_of(record.value),
    "k": lambda record: record.key or b"",
    "K": lambda record: length_of(record.key),
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp,
    "h": lambda record: b",".join(name.encode() + b"=" + show_bytes(value) for name, value in record.headers),
    "%": lambda _: b"%",
}


def renderer(form: str, *, keys: bool, in_json: bool = False) -> Render:
    """Return the function for `--format` and `--keys`; `--json` is the same as `--format json`."""
    if in_json and form not in ("text", "json"):
        raise usage_error(f"--json and --format {form!r} exclude each other")
    if form == "json" or in_json:
        return as_json
    if form == "text":
        return with_key if keys else value_only
    if form == "csv":
        if keys:
            raise usage_error("--keys is for text: --format csv has the keys")
        return as_csv
    if keys:
        raise usage_error("--keys and a format text exclude each other: write %k in it")
    if "%" not in form:
        raise usage_error(
            f"invalid value {form!r} for --format: expected text, json, csv, arrow or parquet (only consume), or a text with fields such as '%t %p %o %k %s\\n'"
        )
    return compile_format(form)


def compile_format(form: str) -> Render:
    """Return the function that fills a format text with a record."""
    pieces = [piece_of(match) for match in TOKEN.finditer(form)]
    return lambda record: b"".join([piece if isinstance(piece, bytes) else piece(record) for piece in pieces])


def piece_of(match: re.Match[str]) -> bytes | Render:
    """Return a part of a format text: bytes, or a function of the record."""
    text, letter, escape = match.group(0), match.group(1), match.group(2)
    if letter is not None:
        if letter not in LETTERS:
            raise usage_error(f"--format has no field {text!r}, only {' '.join('%' + each for each in LETTERS)}")
        return LETTERS[letter]
    if escape is not None:
        return bytes([int(escape[1:], 16)]) if len(escape) == 3 else ESCAPES.get(escape, os.fsencode(text))
    return os.fsencode(text)


def value_only(record: ConsumerRecord) -> bytes:
    return show_bytes(record.value) + b"\n"


def with_key(record: ConsumerRecord) -> bytes:
    return show_bytes(record.key) + b"\t" + show_bytes(record.value) + b"\n"


def heading_of(form: str) -> bytes:
    """Return the header line of the format, or nothing."""
    return csv_line(CSV_COLUMNS) if form == "csv" else b""


def as_csv(record: ConsumerRecord) -> bytes:
    """Return the record as a row of `CSV_COLUMNS`; its bytes are unchanged, its headers are JSON."""
    headers = [[name, to_readable(value)] for name, value in record.headers]
    return csv_line(
        (
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            os.fsdecode(show_bytes(record.key)),
            os.fsdecode(show_bytes(record.value)),
            json.dumps(headers, ensure_ascii=False) if headers else "",
        )
    )


def csv_line(cells: Iterable[object]) -> bytes:
    """Return a CSV line; cells with separators, quotes, CR or LF are quoted."""
    line = StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return os.fsencode(line.getvalue().removesuffix("\r\n") + "\n")


def lines_of(columns: Columns, count: int, *, keys: bool) -> Iterator[bytes]:
    """Yield the first `count` rows in blocks, as `value_only` or `with_key` print them, without record objects."""
    octets = len(columns.values.data) + len(columns.keys.data)
    step = max(1, BLOCK_BYTES * columns.count // max(octets, 1))
    for start in range(0, count, step):
        rows = range(start, min(start + step, count))
        values: Iterable[bytes | None] = map(columns.values.get, rows)
        if columns.values.null_count:
            values = map(show_bytes, values)
        if keys:
            values = (
                show_bytes(columns.keys.get(row)) + b"\t" + show_bytes(value)
                for row, value in zip(rows, values, strict=True)
            )
        yield b"\n".join([*values, b""])  # type: ignore[list-item]


def as_json(record: ConsumerRecord) -> bytes:
    """Return the record as one line of JSON."""
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": to_readable(record.key),
        "value": to_readable(record.value),
        "headers": [[name, to_readable(value)] for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def show_bytes(data: bytes | None) -> bytes:
    return b"null" if data is None else data


def length_of(data: bytes | None) -> bytes:
    """Return the length as in kcat: -1 for null."""
    return b"%d" % (-1 if data is None else len(data))


def to_readable(data: bytes | None) -> Any:
    """Return bytes for JSON: text if they are UTF-8, else base64."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        assert data is not None
        return {"base64": base64.b64encode(data).decode()}
