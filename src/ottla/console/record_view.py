"""A record as the page shows it: JSON where it is, else text, else hex.

Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ottla.client.consumer import ConsumerRecord

MOST_BYTES = 64 * 1024
"""How much of a value is shown."""


class Wanted(NamedTuple):
    """Which records a search is for; nothing in a field lets all through."""

    key: str = ""
    """The whole key."""
    text: str = ""
    """What stands somewhere in the key or in the value."""

    def has(self, key: bytes | None, value: bytes | None) -> bool:
        """Whether a record is one of them."""
        if self.key and key != self.key.encode():
            return False
        sought = self.text.encode()
        return not sought or any(sought in part for part in (key, value) if part is not None)


def record_view(record: ConsumerRecord) -> dict[str, Any]:
    """One record."""
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": shown(record.key),
        "value": shown(record.value),
        "headers": [[name, shown(value)] for name, value in record.headers],
    }


def shown(data: bytes | None) -> dict[str, Any]:
    """Bytes with the form they are shown in, their true size, and whether the end was left out."""
    if data is None:
        return {"form": "null", "text": "", "bytes": 0, "cut": False}
    cut = len(data) > MOST_BYTES
    form, text = form_of(data[:MOST_BYTES], cut)
    return {"form": form, "text": text, "bytes": len(data), "cut": cut}


def form_of(data: bytes, cut: bool) -> tuple[str, str]:
    """json, text or hex, and the bytes in that form."""
    text = text_of(data, cut)
    if text is None:
        return "hex", data.hex(" ")
    if not cut and text[:1] in ("{", "["):
        try:
            return "json", json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            pass
    return "text", text


def text_of(data: bytes, cut: bool) -> str | None:
    """The bytes as text that can be shown; a character that the cut has halved is left out."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not cut or error.end < len(data):
            return None
        text = data[: error.start].decode()
    return text if all(character.isprintable() or character in "\n\r\t" for character in text) else None
