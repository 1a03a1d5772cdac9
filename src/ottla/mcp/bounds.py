"""Limits of one call. Pure. Each violation is one sentence with the value and the limit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ottla.errors import ConfigError

MOST_RECORDS = 100
MOST_RESULT_BYTES = 256 * 1024
"""The most bytes of keys, values and headers in one result."""
RESULT_BYTES = 32 * 1024
"""The same, unless a call chooses another number."""
MOST_FIELD_CHARACTERS = 4096
"""The characters of one key, value or header that are returned."""
MOST_WATCH_SECONDS = 30
MOST_VALUE_BYTES = 64 * 1024
"""The size of a key or value that can be produced."""
MOST_NUMBER = 2**63 - 1
"""The highest offset and time."""
MOST_PARTITION = 2**31 - 1
MOST_PARTITIONS = 100
"""The partitions of a topic that can be created."""


def check_between(name: str, value: int, least: int, most: int) -> int:
    """Return the value of an argument. Raises ConfigError if it is outside of its limits."""
    if not least <= value <= most:
        raise ConfigError(f"invalid value {value} for {name}: expected a number from {least} to {most}")
    return value


def check_choice(name: str, value: str, choices: Iterable[str]) -> str:
    """Return the value of an argument. Raises ConfigError if it is not one of the choices."""
    known = list(choices)
    if value not in known:
        raise ConfigError(f"invalid value {value!r} for {name}: expected {', '.join(known[:-1])} or {known[-1]}")
    return value


def check_size(name: str, text: str | None) -> str | None:
    """Return a key or value. Raises ConfigError if it is too large."""
    if text is not None and (size := len(text.encode())) > MOST_VALUE_BYTES:
        raise ConfigError(f"the {name} has {size} bytes: expected at most {MOST_VALUE_BYTES}")
    return text


def bound_records(records: Iterable[dict[str, Any]], max_bytes: int) -> tuple[list[dict[str, Any]], bool]:
    """Return the first records that fit into `max_bytes`, at least one, and True if there are more.

    Each field is cut to `MOST_FIELD_CHARACTERS`.
    """
    kept: list[dict[str, Any]] = []
    left = max_bytes
    for record in records:
        short = {
            **record,
            "key": bound_field(record["key"]),
            "value": bound_field(record["value"]),
            "headers": [[name, bound_field(value)] for name, value in record["headers"]],
        }
        left -= len(json.dumps(short, ensure_ascii=False).encode())
        if kept and left < 0:
            return kept, True
        kept.append(short)
    return kept, False


def bound_field(shown: dict[str, Any]) -> dict[str, Any]:
    """Return the view of a key, value or header with a text that is not too long."""
    if len(shown["text"]) <= MOST_FIELD_CHARACTERS:
        return shown
    return {**shown, "text": shown["text"][:MOST_FIELD_CHARACTERS], "cut": True}
