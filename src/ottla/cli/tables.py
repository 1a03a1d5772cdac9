"""Tables and JSON of what commands find, under the column names of Kafka's own tools."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from ottla.cli.output import echo, to_json
from ottla.escaping import escape_controls
from ottla.model import TopicPartition


def cell_text(cell: Any) -> str:
    """A cell on one line; what is not there is a dash, and what is several has commas between."""
    if isinstance(cell, tuple) and not isinstance(cell, TopicPartition):
        return ",".join(map(escape_controls, cell)) or "-"
    return "-" if cell is None or cell == "" else escape_controls(cell)


def aligned(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns flush left, each as wide as its widest cell."""
    lines = [list(columns), *([cell_text(cell) for cell in row] for row in rows)]
    widths = [max(map(width_of, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell + " " * (width - width_of(cell)) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def width_of(text: str) -> int:
    """How many columns of a terminal it takes: two for each Korean, Chinese or Japanese character, none for what is set upon another."""
    if text.isascii():
        return len(text)
    return sum(columns_of(character) for character in unicodedata.normalize("NFC", text))


def columns_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "FW" else 1


def key_of(column: str) -> str:
    """A column's name in JSON: `CURRENT-OFFSET` is current_offset, `ProducerId` producer_id."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column.replace("#", "number of ")).lower()
    return re.sub(r"[^a-z0-9]+", "_", words).strip("_")


def objects(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """A partition is its `topic` and its `partition`, wherever it stands, under one heading or two."""
    keys = [key_of(column) for column in columns]
    return [
        {name: value for key, cell in zip(keys, row, strict=True) for name, value in fields_of(key, cell)}
        for row in rows
    ]


def fields_of(key: str, cell: Any) -> Iterable[tuple[str, Any]]:
    return cell._asdict().items() if isinstance(cell, TopicPartition) else ((key, cell),)


def as_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A list of objects, one a row."""
    return to_json(objects(columns, rows), indent=2)


def show(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, in_json: bool) -> None:
    echo(as_json(columns, rows) if in_json else aligned(columns, rows))
