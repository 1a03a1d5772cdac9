"""One fault: which requests it hits, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

DELAY, DROP, LOSE, FAIL, HOLD = "delay", "drop", "lose", "fail", "hold"


@dataclass(eq=False)
class Fault:
    """In effect until the test is over, `undo()` is called, or the `with` block that it opens ends."""

    kind: str
    api: str | None
    """Whose requests it hits; None for all."""
    take_back: Callable[[Fault], None]
    nth: int | None = None
    """Which one alone, counted from 1."""
    times: int | None = None
    """How many at most; None for all."""
    seconds: float = 0.0
    error_code: int = 0
    seen: int = field(default=0, init=False)
    """Requests that came by."""
    happened: int = field(default=0, init=False)
    """Requests that it hit."""

    def hits(self, api: str) -> bool:
        """Whether it hits the request that comes by now; counts it."""
        if self.api not in (None, api):
            return False
        self.seen += 1
        hit = self.seen == self.nth if self.nth is not None else self.times is None or self.happened < self.times
        self.happened += hit
        return hit

    def undo(self) -> None:
        """Let requests pass again; what it holds back goes on."""
        self.take_back(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()
