"""The selection of topics and groups, and their names in the target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.name_patterns import check_patterns, choose_names

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
        check_patterns((*self.topics, *self.without_topics, *self.groups, *self.without_groups))

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
