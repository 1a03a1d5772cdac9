"""What `--add-config` and `--delete-config` ask for.

kafka-configs takes several changes in one text, `a=1,b=2`, with brackets around a value that has commas itself:
`cleanup.policy=[compact,delete]`. Ours may be given several times as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ottla.cli.options import senseless

PIECE = re.compile(r"(?:\[[^\]]*\]|[^,\[]|\[(?![^\]]*\]))+")
"""What stands between two commas, those within brackets left alone."""


def config_changes(added: Iterable[str], deleted: Iterable[str], of_file: Mapping[str, str]) -> dict[str, str | None]:
    """The configs to set with their values, and those to give back with None."""
    changes: dict[str, str | None] = dict(of_file)
    for text in added:
        for piece in PIECE.findall(text):
            key, value = key_and_value(piece)
            if key in changes:
                raise senseless(f"{key} is to be set twice; name it once")
            changes[key] = value
    for key in (key.strip() for text in deleted for key in text.split(",")):
        if key in changes:
            raise senseless(f"{key} is to be set and deleted at once; choose one")
        changes[key] = None
    if not changes:
        raise senseless("nothing is to be altered: name --add-config, --add-config-file or --delete-config")
    return changes


def key_and_value(piece: str) -> tuple[str, str]:
    """One change; brackets around the whole value are no part of it."""
    key, equals, value = piece.partition("=")
    if not equals or not key.strip():
        raise senseless(f"--add-config {piece!r} must be KEY=VALUE; around a value with commas stand brackets: a=[b,c]")
    value = value.strip()
    return key.strip(), value[1:-1] if value.startswith("[") and value.endswith("]") else value
