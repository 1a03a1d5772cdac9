"""What a query is called at the brokers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """Of one query, by its id, which no other has: a new checkpoint is a new query."""

    prefix: str
    query: str

    @property
    def announcements(self) -> str:
        """The group whose offset says which batch is being written."""
        return f"{self.prefix}-{self.query}"

    def task(self, index: int) -> str:
        """A task's transactional id, and the group of its mark."""
        return f"{self.announcements}-{index}"

    def index_of(self, group: str) -> int | None:
        """The inverse of `task`; None for what is not a task of this query."""
        start = f"{self.announcements}-"
        number = group[len(start) :] if group.startswith(start) else ""
        return int(number) if number.isdecimal() else None
