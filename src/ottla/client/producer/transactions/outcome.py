"""How something ended that was asked for: set once, looked at by whoever waits."""

from __future__ import annotations


class Outcome:
    """Open until it is well or has an error."""

    __slots__ = ("done", "error")

    def __init__(self) -> None:
        self.done = False
        self.error: Exception | None = None

    def settle(self, error: Exception | None = None) -> None:
        """It is well, or has this error; what is settled already stays as it is."""
        if not self.done:
            self.done, self.error = True, error

    def is_settled(self) -> bool:
        """For whoever needs a function."""
        return self.done
