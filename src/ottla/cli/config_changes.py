"""Parse `--add-config` and `--delete-config`.

kafka-configs takes several changes in one text, `a=1,b=2`, with brackets around a value that contains commas:
`cleanup.policy=[compact,delete]`. Ottla's options may also be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ottla.cli.options import usage_error

PIECE = re.compile(r"(?:\[[^\]]*\]|[^,\[]|\[(?![^\]]*\]))+")
"""The text between two commas; commas within brackets do not separate."""


def config_changes(added: Iterable[str], deleted: Iterable[str], of_file: Mapping[str, str]) -> dict[str, str | None]:
    """Return the values to set by config; None deletes the config."""
    changes: dict[str, str | None] = dict(of_file)
    for text in added:
        for piece in PIECE.findall(text):
            key, value = key_and_value(piece)
            if key in changes:
                raise usage_error(f"{key} is set twice: give it once")
            changes[key] = value
    for key in (key.strip() for text in deleted for key in text.split(",")):
        if key in changes:
            raise usage_error(f"{key} is both set and deleted: give only one of them")
        changes[key] = None
    if not changes:
        raise usage_error(
            "nothing to alter: expected --add-config, --add-config-file or --delete-config (--set is for settings of this client)"
        )
    return changes


def key_and_value(piece: str) -> tuple[str, str]:
    """Return key and value of one change, without brackets around the whole value."""
    key, equals, value = piece.partition("=")
    if not equals or not key.strip():
        raise usage_error(
            f"invalid value {piece!r} for --add-config: expected KEY=VALUE, or KEY=[a,b] for a value with commas"
        )
    value = value.strip()
    return key.strip(), value[1:-1] if value.startswith("[") and value.endswith("]") else value
