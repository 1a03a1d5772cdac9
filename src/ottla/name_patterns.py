"""Names chosen by regular expressions for whole names, as a mirror and a backup choose topics and groups. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ottla.errors import ConfigError


def check_patterns(patterns: Iterable[str]) -> None:
    """Raise ConfigError for a pattern that is not a regular expression."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(
                f"invalid pattern {pattern!r}: {error}; expected a name or a regular expression"
            ) from None


def choose_names(names: Iterable[str], wanted: Sequence[str], unwanted: Sequence[str]) -> list[str]:
    """Return the names that match a wanted pattern and no unwanted one, sorted."""
    return sorted(name for name in names if matches_any(name, wanted) and not matches_any(name, unwanted))


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Return True if a pattern matches the whole name."""
    return any(re.fullmatch(pattern, name) for pattern in patterns)
