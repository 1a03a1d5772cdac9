"""Tables in HTML for notebooks, used by `_repr_html_`. Pure.

All texts are escaped. Colors are those of the page, so that a table fits into light and dark themes; the custom property
`--ottla-line` changes the color of its lines.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

MOST_ROWS = 20
"""The rows that are shown."""
MOST_CHARACTERS = 200
"""The characters of a cell that are shown."""
SHORT = 40
"""The characters of a cell without line breaks."""
LINE = "border-bottom:1px solid var(--ottla-line,color-mix(in srgb,currentColor 25%,transparent));"
CELL = f"{LINE}padding:2px 8px;color:inherit;vertical-align:top;"
MONO = "font-family:var(--jp-code-font-family,monospace);white-space:pre-wrap;overflow-wrap:anywhere;"


def render_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], count: int) -> str:
    """Return a table with a title; `count` is the number of all rows, of which `MOST_ROWS` are shown."""
    head = "".join(f'<th style="{CELL}text-align:left">{html.escape(name)}</th>' for name in columns)
    shown = list(zip(range(MOST_ROWS), rows, strict=False))
    body = "".join(f"<tr>{''.join(map(render_cell, row))}</tr>" for _, row in shown)
    more = f"<div>… and {count - len(shown):,} more</div>" if count > len(shown) else ""
    table = f'<table style="border-collapse:collapse;color:inherit;background:none"><tr>{head}</tr>{body}</table>'
    return f'<div style="color:inherit"><div><b>{html.escape(title)}</b></div>{table if shown else ""}{more}</div>'


def render_cell(value: Any) -> str:
    if value is None:
        return f'<td style="{CELL}opacity:.6">null</td>'
    text = text_of(value)
    wraps = MONO if len(text) > SHORT else "white-space:nowrap"
    align = "text-align:right" if isinstance(value, int) and not isinstance(value, bool) else f"text-align:left;{wraps}"
    return f'<td style="{CELL}{align}">{html.escape(text)}</td>'


def text_of(value: Any) -> str:
    """Return a value as text: bytes as UTF-8 or hexadecimal, and the end of a long text as its length."""
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value[:MOST_CHARACTERS].hex(" ")
            return f"{text[:MOST_CHARACTERS]}… ({len(value):,} bytes)" if len(text) > MOST_CHARACTERS else text
    else:
        text = str(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}… ({len(text):,} characters)"


def moment_of(timestamp_ms: int) -> str:
    """Return a timestamp in UTC; a number that is no time stays as it is."""
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
