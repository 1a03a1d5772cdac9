"""The selection of topics and groups, and their names in the target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.errors import ConfigError

LEDGERS = "ottla.mirror."
"""Prefix of the ledger topics."""


@dataclass(frozen=True)
class Selection:
    """Regular expressions for whole names, as in Kafka's MirrorMaker."""

    topics: Sequence[str] = (".*",)
    without_topics: Sequence[str] = ()
    groups: Sequence[str] = (".*",)
    without_groups: Sequence[str] = ()
    prefix: str = ""
    """Prefix of the topics' names in the target."""

    def __post_init__(self) -> None:
        for pattern in (*self.topics, *self.without_topics, *self.groups, *self.without_groups):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(
                    f"invalid pattern {pattern!r}: {error}; expected a name or a regular expression"
                ) from None

    def target_name(self, topic: str) -> str:
        """Return the name in the target."""
        return self.prefix + topic

    def of_topics(self, names: Iterable[str]) -> list[str]:
        """Return the topics to copy, without ledgers and without topics that have the prefix already."""
        return [name for name in choose_names(names, self.topics, self.without_topics) if not self._is_ours(name)]

    def of_groups(self, names: Iterable[str]) -> list[str]:
        """Return the groups with offsets to copy."""
        return choose_names(names, self.groups, self.without_groups)

    def _is_ours(self, topic: str) -> bool:
        return topic.startswith(LEDGERS) or (self.prefix != "" and topic.startswith(self.prefix))


def choose_names(names: Iterable[str], wanted: Sequence[str], unwanted: Sequence[str]) -> list[str]:
    """Return the names that match a wanted pattern and no unwanted one."""
    return sorted(name for name in names if matches_any(name, wanted) and not matches_any(name, unwanted))


def matches_any(name: str, patterns: Sequence[str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)
