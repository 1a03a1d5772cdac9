"""The seeds of the histories to play, and the output of a failure."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

SETTING = "OTTLA_SEED"


class History(Protocol):
    """A history that is determined by its seed."""

    def run(self) -> None: ...

    def transcript(self) -> str:
        """Return the last events as text."""


def chosen(count: int) -> Iterable[int]:
    """The seed that `OTTLA_SEED` names, or the first so many."""
    seed = os.environ.get(SETTING)
    return range(count) if seed is None else [int(seed)]


def play(make: Callable[[int], History], seeds: Iterable[int]) -> None:
    """Play histories one after the other. A failure contains its seed and the last events."""
    with undisturbed():
        for seed in seeds:
            history = make(seed)
            try:
                history.run()
            except Exception as error:
                raise AssertionError(describe_failure(history, seed, error)) from error


def describe_failure(history: History, seed: int, error: Exception) -> str:
    """For a person."""
    return (
        f"{type(error).__name__}: {error}\nplay it again: {SETTING}={seed} python -m pytest tests/simulation\n"
        f"{history.transcript()}"
    )


def is_found(make: Callable[[int], History], seeds: Iterable[int]) -> bool:
    """True if one of these histories fails: it has found a planted bug."""
    with undisturbed():
        return any(fails(make, seed) for seed in seeds)


def fails(make: Callable[[int], History], seed: int) -> bool:
    """Also where it cannot even begin."""
    try:
        make(seed).run()
    except Exception:
        return True
    return False


@contextmanager
def undisturbed() -> Iterator[None]:
    """Without the log, which would be long, and with garbage collected seldom: histories leave no little of it."""
    before, threshold = logging.root.manager.disable, gc.get_threshold()
    logging.disable(logging.CRITICAL)
    gc.set_threshold(50_000, 20, 20)
    try:
        yield
    finally:
        logging.disable(before)
        gc.set_threshold(*threshold)
