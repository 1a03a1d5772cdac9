"""The names of a query at the brokers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """The names of one query, from its unique id: a new checkpoint is a new query."""

    prefix: str
    query: str

    @property
    def announcements(self) -> str:
        """The group with the announced batch as offset."""
        return f"{self.prefix}-{self.query}"

    def task(self, index: int) -> str:
        """Return a task's transactional id, which is also the group of its mark."""
        return f"{self.announcements}-{index}"

    def index_of(self, group: str) -> int | None:
        """Return the index of a task from its name; None for other names."""
        start = f"{self.announcements}-"
        number = group[len(start) :] if group.startswith(start) else ""
        return int(number) if number.isdecimal() else None
