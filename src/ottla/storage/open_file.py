"""An open file that closes when nobody needs it any more.

A segment may be deleted while slices of it still travel to sockets: they hold this object, and the descriptor
goes with the last of them.
"""

from __future__ import annotations

import os
from pathlib import Path


class OpenFile:
    """A descriptor for positioned reads and writes; there is no shared position."""

    __slots__ = ("_fd",)

    def __init__(self, path: Path | str, *, create: bool = False) -> None:
        self._fd = -1
        self._fd = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644)

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
