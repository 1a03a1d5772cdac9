"""A series of transactional producers with one transactional id. The outcome of the last transaction before a failure
is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

from interop.splits.history import History

FAR = 100_000
"""The distance of a successor's first number from the last one of a producer that is still writing."""


class Transacting(Protocol):
    """One producer of the series: `interop.transactor`, `interop.java_transactor` or ours."""

    @property
    def count(self) -> int: ...
    @property
    def failed(self) -> str: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def aborted_attempts(self) -> list[str]: ...
    def __enter__(self) -> object: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Lives:
    """Starts a successor for each producer that ended. The successor skips the number with the unknown outcome."""

    isolation = "read_committed"

    def __init__(self, name: str, topics: Sequence[str], beget: Callable[[int], Transacting], history: History) -> None:
        self.name = name
        self.places = [f"{topic}-0" for topic in topics]
        self._beget = beget
        self._history = history
        self._lives: list[tuple[int, Transacting]] = []
        self.undead: list[Transacting] = []
        """Fenced producers that were still writing and have not received the error yet."""
        self.fenced = self.killed = self.failures = 0

    def __enter__(self) -> Lives:
        self._begin(0)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the current producer. Fenced producers have to end by themselves before."""
        self._now.__exit__(None, None, None)

    @property
    def _now(self) -> Transacting:
        return self._lives[-1][1]

    @property
    def progress(self) -> int:
        return sum(life.count - first for first, life in self._lives)

    def tend(self) -> None:
        """Start a successor if the current producer has ended, and count the fenced producers that ended."""
        for each in [each for each in self.undead if each.is_over]:
            self.undead.remove(each)
            self.fenced += 1
            self._history.add(f"{self.name} is shut out: {last_line(each.failed)}")
        if self._now.is_over:
            self.failures += 1
            self._history.add(f"{self.name} has failed: {last_line(self._now.failed)}")
            self._begin(self._now.count + 1)

    def kill(self) -> None:
        """Kill the process of the current producer and start the next one.

        Only for producers in a process of their own.
        """
        self._now.kill()  # type: ignore[attr-defined]
        self.killed += 1
        self._history.add(f"{self.name} is killed at {self._now.count}")
        self._begin(self._now.count + 1)

    def take_over(self) -> None:
        """Start a successor while the current producer is still writing."""
        self.undead.append(self._now)
        self._history.add(f"{self.name} is taken over from at {self._now.count}")
        self._begin(self._now.count + FAR)

    def acknowledged(self, place: str) -> set[int]:
        return {number for first, life in self._lives for number in range(first, life.count)}

    @property
    def aborted(self) -> list[str]:
        return [attempt for _, life in self._lives for attempt in life.aborted_attempts]

    def _begin(self, first: int) -> None:
        self._lives.append((first, self._beget(first)))
        self._now.__enter__()


def last_line(text: str) -> str:
    return next(reversed(text.splitlines()), "it said nothing")[:300]
