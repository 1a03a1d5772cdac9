"""Run work in a separate thread during a test."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self


class Background(ABC):
    """A thread that works during a `with` block. `_run` has to return after `_over` is set."""

    def __init__(self, *, daemon: bool = False) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=daemon)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def is_over(self) -> bool:
        """True if the work has failed or has ended after it was stopped."""
        return not self._thread.is_alive()

    @abstractmethod
    def _run(self) -> None: ...
