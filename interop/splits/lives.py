"""A transactional producer that has one life after another, under one transactional id: what its last transaction came to, nobody was told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

from interop.splits.history import History

FAR = 100_000
"""Numbers further on begins who takes over from one that still writes."""


class Transacting(Protocol):
    """One life: `interop.transactor`, `interop.java_transactor` or ours."""

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
    """Whoever is over has a successor, which is not to write the number again whose end is unknown."""

    isolation = "read_committed"

    def __init__(self, name: str, topics: Sequence[str], beget: Callable[[int], Transacting], history: History) -> None:
        self.name = name
        self.places = [f"{topic}-0" for topic in topics]
        self._beget = beget
        self._history = history
        self._lives: list[tuple[int, Transacting]] = []
        self.undead: list[Transacting] = []
        """That were taken over from while they wrote, and have not heard of it."""
        self.fenced = self.killed = self.failures = 0

    def __enter__(self) -> Lives:
        self._begin(0)
        return self

    def __exit__(self, *_: object) -> None:
        """All of them end; who was taken over from has to be over by itself by then."""
        self._now.__exit__(None, None, None)

    @property
    def _now(self) -> Transacting:
        return self._lives[-1][1]

    @property
    def progress(self) -> int:
        return sum(life.count - first for first, life in self._lives)

    def tend(self) -> None:
        """Have somebody go on where nobody does."""
        for each in [each for each in self.undead if each.is_over]:
            self.undead.remove(each)
            self.fenced += 1
            self._history.add(f"{self.name} is shut out: {last_line(each.failed)}")
        if self._now.is_over:
            self.failures += 1
            self._history.add(f"{self.name} has failed: {last_line(self._now.failed)}")
            self._begin(self._now.count + 1)

    def kill(self) -> None:
        """Where its process can be killed; the next one comes at once."""
        self._now.kill()  # type: ignore[attr-defined]
        self.killed += 1
        self._history.add(f"{self.name} is killed at {self._now.count}")
        self._begin(self._now.count + 1)

    def take_over(self) -> None:
        """Another begins while this one writes on."""
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
