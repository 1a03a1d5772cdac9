"""The result of a request or call, set once."""

from __future__ import annotations


class CallOutcome:
    """Pending until it succeeds or has an error."""

    __slots__ = ("done", "error")

    def __init__(self) -> None:
        self.done = False
        self.error: Exception | None = None

    def set_result(self, error: Exception | None = None) -> None:
        """Set the result: success, or this error. A result that is set does not change."""
        if not self.done:
            self.done, self.error = True, error

    def is_done(self) -> bool:
        """Return `done`, for callers that need a function."""
        return self.done
