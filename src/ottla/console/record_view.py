"""The view of a record: JSON if possible, else text, else hex. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ottla.client.consumer import ConsumerRecord

MOST_BYTES = 64 * 1024
"""The number of bytes of a value that are shown."""


class RecordCondition(NamedTuple):
    """The filter of a search; an empty field matches all records."""

    key: str = ""
    """The complete key."""
    text: str = ""
    """A text that the key or the value contains."""

    def has(self, key: bytes | None, value: bytes | None) -> bool:
        """Return true if a record matches."""
        if self.key and key != self.key.encode():
            return False
        sought = self.text.encode()
        return not sought or any(sought in part for part in (key, value) if part is not None)


def record_view(
    record: ConsumerRecord, show_field: Callable[[ConsumerRecord, str], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the view of a record; `show_field` returns the view of its `key` or `value` if a registry has the schemas."""
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": show_bytes(record.key) if show_field is None else show_field(record, "key"),
        "value": show_bytes(record.value) if show_field is None else show_field(record, "value"),
        "headers": [[name, show_bytes(value)] for name, value in record.headers],
    }


def show_bytes(data: bytes | None) -> dict[str, Any]:
    """Return bytes with their form, their size, and whether the end was cut off."""
    if data is None:
        return {"form": "null", "text": "", "bytes": 0, "cut": False}
    cut = len(data) > MOST_BYTES
    form, text = form_of(data[:MOST_BYTES], cut)
    return {"form": form, "text": text, "bytes": len(data), "cut": cut}


def form_of(data: bytes, cut: bool) -> tuple[str, str]:
    """Return the form (json, text or hex) and the bytes in that form."""
    text = text_of(data, cut)
    if text is None:
        return "hex", data.hex(" ")
    if not cut and text[:1] in ("{", "["):
        try:
            value = json.loads(text)
            shown = json.dumps(value, indent=2, ensure_ascii=False)
            # Escapes may hide what is not printable, and half of a surrogate pair, which no response can contain.
            return "json", shown if is_printable(shown) else json.dumps(value, indent=2)
        except (ValueError, RecursionError):
            pass
    return "text", text


def text_of(data: bytes, cut: bool) -> str | None:
    """Return the bytes as printable text, or None; a character that is cut at the end is omitted."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not cut or error.end < len(data):
            return None
        text = data[: error.start].decode()
    return text if is_printable(text) else None


def is_printable(text: str) -> bool:
    return all(character.isprintable() or character in "\n\r\t" for character in text)
