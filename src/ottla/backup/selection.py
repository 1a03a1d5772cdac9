"""The topics and groups of a backup or a restore."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ottla.errors import ConfigError
from ottla.name_patterns import check_patterns, choose_names, matches_any


class Selection(Struct, frozen=True, forbid_unknown_fields=True):
    """Names or regular expressions for whole names."""

    topics: tuple[str, ...] = (".*",)
    without_topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = (".*",)
    without_groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_patterns((*self.topics, *self.without_topics, *self.groups, *self.without_groups))

    @property
    def is_whole_cluster(self) -> bool:
        """True if all topics are selected, so that access rules and quotas belong to the backup."""
        return self.topics == (".*",)

    def choose_topics(self, names: Iterable[str], place: str) -> list[str]:
        """Return the selected topics. Raises ConfigError for a pattern that matches none; `place` is in its text."""
        known = sorted(names)
        for pattern in () if self.is_whole_cluster else self.topics:
            if not any(matches_any(name, [pattern]) for name in known):
                raise ConfigError(f"{place} has no topic {pattern!r}; it has {join_some(known)}")
        return choose_names(known, self.topics, self.without_topics)

    def choose_groups(self, names: Iterable[str]) -> list[str]:
        """Return the selected groups."""
        return choose_names(names, self.groups, self.without_groups)


def join_some(names: list[str], limit: int = 5) -> str:
    """Return the first names as a text."""
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "none") + rest
