"""Print tables and JSON of results, under the column names of Kafka's tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ottla.cli.output import echo, to_json
from ottla.escaping import escape_controls
from ottla.model import TopicPartition

STEP = 1_000
"""The factor between two units of a size."""
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def cell_text(cell: Any) -> str:
    """Return a cell's text on one line: a dash for None, commas between the values of a tuple."""
    if isinstance(cell, tuple) and not isinstance(cell, TopicPartition):
        return ",".join(map(escape_controls, cell)) or "-"
    return "-" if cell is None or cell == "" else escape_controls(cell)


def format_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table with left-aligned columns."""
    lines = [list(columns), *([cell_text(cell) for cell in row] for row in rows)]
    widths = [max(map(width_of, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell + " " * (width - width_of(cell)) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def width_of(text: str) -> int:
    """Return the width of a text in terminal columns: two for wide East Asian characters, none for combining ones."""
    if text.isascii():
        return len(text)
    import unicodedata  # most names are ASCII

    characters = [each for each in unicodedata.normalize("NFC", text) if not unicodedata.combining(each)]
    return sum(2 if unicodedata.east_asian_width(each) in "FW" else 1 for each in characters)


def key_of(column: str) -> str:
    """Return a column's key in JSON: `CURRENT-OFFSET` becomes current_offset, `ProducerId` producer_id."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column.replace("#", "number of ")).lower()
    return re.sub(r"[^a-z0-9]+", "_", words).strip("_")


def to_objects(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return a JSON object per row. A partition becomes the fields `topic` and `partition` under any heading."""
    keys = [key_of(column) for column in columns]
    return [
        {name: value for key, cell in zip(keys, row, strict=True) for name, value in fields_of(key, cell)}
        for row in rows
    ]


def fields_of(key: str, cell: Any) -> Iterable[tuple[str, Any]]:
    return cell._asdict().items() if isinstance(cell, TopicPartition) else ((key, cell),)


def as_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a JSON list with one object per row."""
    return to_json(to_objects(columns, rows), indent=2)


def show(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, in_json: bool) -> None:
    echo(as_json(columns, rows) if in_json else format_table(columns, rows))


def format_size(count: int | None) -> object:
    """Return a size in units of powers of a thousand, or None for None."""
    if count is None:
        return None
    size, unit = float(count), 0
    while size >= STEP - 0.05 and unit < len(UNITS) - 1:
        size, unit = size / STEP, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {UNITS[unit]}"
