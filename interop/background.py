"""Work that goes on beside a test, in a thread of its own."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self


class Background(ABC):
    """At work for as long as a `with` lasts; `_run` looks at `_over`."""

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
        """Whether it has failed, or ended as it was asked to."""
        return not self._thread.is_alive()

    @abstractmethod
    def _run(self) -> None: ...
