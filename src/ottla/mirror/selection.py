"""Which topics and groups are carried, and under which names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.errors import ConfigError

LEDGERS = "ottla.mirror."
"""What the names of topics begin with that keep how far a mirror has come."""


@dataclass(frozen=True)
class Selection:
    """Patterns are regular expressions for whole names, as those of Kafka's MirrorMaker."""

    topics: Sequence[str] = (".*",)
    without_topics: Sequence[str] = ()
    groups: Sequence[str] = (".*",)
    without_groups: Sequence[str] = ()
    prefix: str = ""
    """What the names of topics begin with in the target."""

    def __post_init__(self) -> None:
        for pattern in (*self.topics, *self.without_topics, *self.groups, *self.without_groups):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(f"{pattern!r} is no pattern of names: {error}; a name alone is one") from None

    def renamed(self, topic: str) -> str:
        """The name in the target."""
        return self.prefix + topic

    def of_topics(self, names: Iterable[str]) -> list[str]:
        """Those that are carried; what a mirror keeps for itself is not, nor what came by this prefix."""
        return [name for name in chosen(names, self.topics, self.without_topics) if not self._is_ours(name)]

    def of_groups(self, names: Iterable[str]) -> list[str]:
        """Those whose offsets are carried."""
        return chosen(names, self.groups, self.without_groups)

    def _is_ours(self, topic: str) -> bool:
        return topic.startswith(LEDGERS) or (self.prefix != "" and topic.startswith(self.prefix))


def chosen(names: Iterable[str], wanted: Sequence[str], unwanted: Sequence[str]) -> list[str]:
    """Those that one of the patterns fits, and none of the others."""
    return sorted(name for name in names if fits(name, wanted) and not fits(name, unwanted))


def fits(name: str, patterns: Sequence[str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)
