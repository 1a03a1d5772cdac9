"""One fault: the requests that it affects, and its effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

DELAY, DROP, LOSE, FAIL, HOLD = "delay", "drop", "lose", "fail", "hold"


@dataclass(eq=False)
class Fault:
    """In effect until the end of the test, `undo()`, or the end of its `with` block."""

    kind: str
    api: str | None
    """The API that it affects; None for all."""
    remove_from_broker: Callable[[Fault], None]
    nth: int | None = None
    """Affect only this request, counted from 1."""
    times: int | None = None
    """The maximum number of affected requests; None for all."""
    seconds: float = 0.0
    error_code: int = 0
    seen: int = field(default=0, init=False)
    """The number of matching requests so far."""
    happened: int = field(default=0, init=False)
    """The number of affected requests so far."""

    def is_hit_by(self, api: str) -> bool:
        """Count a request; true if the fault affects it."""
        if self.api not in (None, api):
            return False
        self.seen += 1
        hit = self.seen == self.nth if self.nth is not None else self.times is None or self.happened < self.times
        self.happened += hit
        return hit

    def undo(self) -> None:
        """Remove the fault; held requests continue."""
        self.remove_from_broker(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()
