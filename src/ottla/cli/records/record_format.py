r"""How a record is printed: its value, with its key, as JSON, as CSV, or as a format text of kcat's asks for.

kcat's letters: %s value, %S its length, %k key, %K its length, %t topic, %p partition, %o offset, %T timestamp,
%h headers, %% a per cent sign; and \n, \r, \t, \\, \xNN. Nothing is added at the end.
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

from ottla.cli.options import senseless

if TYPE_CHECKING:
    from ottla.client.consumer import ConsumerRecord
    from ottla.records.columns import Columns

Render = Callable[["ConsumerRecord"], bytes]
TOKEN = re.compile(r"%(.?)|\\(x[0-9a-fA-F]{2}|.)|[^%\\]+|\\", re.DOTALL)
ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}
BLOCK_BYTES = 64 * 1024
"""About how much is printed at once: what stays in a processor's cache from being fetched until it is written."""
CSV_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
LETTERS: dict[str, Render] = {
    "s": lambda record: shown(record.value),
    "S": lambda record: length_of(record.value),
    "k": lambda record: shown(record.key),
    "K": lambda record: length_of(record.key),
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp,
    "h": lambda record: b",".join(name.encode() + b"=" + shown(value) for name, value in record.headers),
    "%": lambda _: b"%",
}


def renderer(form: str, *, keys: bool, in_json: bool = False) -> Render:
    """What `--format` asks for, and `--keys` where it is text; `--json` is `--format json`."""
    if in_json and form not in ("text", "json"):
        raise senseless(f"--json and --format {form!r} exclude each other")
    if form == "json" or in_json:
        return as_json
    if form == "text":
        return with_key if keys else value_only
    if form == "csv":
        if keys:
            raise senseless("--keys is of text: --format csv has the keys")
        return as_csv
    if keys:
        raise senseless("--keys and a format text exclude each other: write %k in it")
    if "%" not in form:
        raise senseless(
            f"--format {form!r} must be text, json, csv, arrow, parquet (both of consume), or a text with fields such as '%t %p %o %k %s\\n'"
        )
    return formatted(form)


def formatted(form: str) -> Render:
    """The function that fills a format text with a record."""
    pieces = [piece_of(match) for match in TOKEN.finditer(form)]
    return lambda record: b"".join([piece if isinstance(piece, bytes) else piece(record) for piece in pieces])


def piece_of(match: re.Match[str]) -> bytes | Render:
    """A part of a format text: bytes as they are, or what is asked of each record."""
    text, letter, escape = match.group(0), match.group(1), match.group(2)
    if letter is not None:
        if letter not in LETTERS:
            raise senseless(f"--format has no field {text!r}, only {' '.join('%' + each for each in LETTERS)}")
        return LETTERS[letter]
    if escape is not None:
        return bytes([int(escape[1:], 16)]) if len(escape) == 3 else ESCAPES.get(escape, os.fsencode(text))
    return os.fsencode(text)


def value_only(record: ConsumerRecord) -> bytes:
    return shown(record.value) + b"\n"


def with_key(record: ConsumerRecord) -> bytes:
    return shown(record.key) + b"\t" + shown(record.value) + b"\n"


def heading_of(form: str) -> bytes:
    """The first line, where there is one that is no record."""
    return csv_line(CSV_COLUMNS) if form == "csv" else b""


def as_csv(record: ConsumerRecord) -> bytes:
    """The record as a row of `CSV_COLUMNS`, its bytes as they are, its headers as JSON."""
    headers = [[name, readable(value)] for name, value in record.headers]
    return csv_line(
        (
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            os.fsdecode(shown(record.key)),
            os.fsdecode(shown(record.value)),
            json.dumps(headers, ensure_ascii=False) if headers else "",
        )
    )


def csv_line(cells: Iterable[object]) -> bytes:
    """Cells with commas between, in quotes where they have to be: with either end of a line in them, too."""
    line = StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return os.fsencode(line.getvalue().removesuffix("\r\n") + "\n")


def lines_of(columns: Columns, count: int, *, keys: bool) -> Iterator[bytes]:
    """The first `count` rows as `value_only` or `with_key` print them, some lines at a time, and without a record for each."""
    octets = len(columns.values.data) + len(columns.keys.data)
    step = max(1, BLOCK_BYTES * columns.count // max(octets, 1))
    for start in range(0, count, step):
        rows = range(start, min(start + step, count))
        values: Iterable[bytes | None] = map(columns.values.get, rows)
        if columns.values.null_count:
            values = map(shown, values)
        if keys:
            values = (
                shown(columns.keys.get(row)) + b"\t" + shown(value) for row, value in zip(rows, values, strict=True)
            )
        yield b"\n".join([*values, b""])  # type: ignore[list-item]


def as_json(record: ConsumerRecord) -> bytes:
    """The record as one line of JSON."""
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": readable(record.key),
        "value": readable(record.value),
        "headers": [[name, readable(value)] for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def shown(data: bytes | None) -> bytes:
    return b"null" if data is None else data


def length_of(data: bytes | None) -> bytes:
    """As kcat has it: -1 for what is not there."""
    return b"%d" % (-1 if data is None else len(data))


def readable(data: bytes | None) -> Any:
    """Text where it is text; JSON has no bytes."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        assert data is not None
        return {"base64": base64.b64encode(data).decode()}
