"""One process for one data directory.

The lock is held on Kafka's own `.lock` file, both as BSD and as POSIX lock: the first also tells two brokers of one
process apart, the second is the one that Kafka's JVM takes.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ottla.errors import ConfigError

FILE_NAME = ".lock"


class DirectoryLock:
    """Held from construction to `release`, or to the end of the process."""

    def __init__(self, directory: Path) -> None:
        """ConfigError, naming the holder, where somebody else holds it."""
        self._fd = os.open(directory / FILE_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 32, 0).decode(errors="replace").strip()
            self.release()
            raise ConfigError(
                f"data directory {directory} is in use by {f'process {holder}' if holder else 'another process'}: "
                "stop that broker or choose another directory"
            ) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    @property
    def held(self) -> bool:
        return self._fd >= 0

    def release(self) -> None:
        """Let others have the directory; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
