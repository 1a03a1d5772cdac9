"""A log of events with their times, for the analysis of a failure."""

from __future__ import annotations

import threading
import time


class History:
    """Lines with the seconds since the start. With `shown`, each line is also printed at once."""

    def __init__(self, *, shown: bool) -> None:
        self._begun = time.monotonic()
        self._lines: list[str] = []
        self._lock = threading.Lock()
        self._shown = shown

    def add(self, line: str) -> None:
        stamped = f"{time.monotonic() - self._begun:7.1f}  {line}"
        with self._lock:
            self._lines.append(stamped)
            if self._shown:
                print(stamped, flush=True)

    def __str__(self) -> str:
        with self._lock:
            return "\n".join(self._lines)
