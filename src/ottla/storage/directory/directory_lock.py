"""The lock that limits a data directory to one process.

It is held on Kafka's own `.lock` file, both as BSD and as POSIX lock: the first also separates two brokers of one
process, the second is the one that Kafka's JVM uses.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from ottla.errors import ConfigError
from ottla.storage.files.regular_file import open_regular

FILE_NAME = ".lock"


class DirectoryLock:
    """A lock that is held from construction to `release`, or to the end of the process."""

    def __init__(self, directory: Path) -> None:
        """Acquire the lock. Raises ConfigError, with the holder's name, if another process has it."""
        self._path = directory / FILE_NAME
        self._fd = open_regular(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not try_lock(fcntl.flock, self._fd):
                # Only the holder of the lock writes the file, so its number is the holder's process id.
                number = os.pread(self._fd, 32, 0).decode(errors="replace").strip()
                raise in_use_error(directory, f"process {number}" if number else "another process")
            if not try_lock(fcntl.lockf, self._fd):
                raise in_use_error(directory, "another program, perhaps Kafka")
            self._write_holder()
        except BaseException:
            self.release()
            raise

    def _write_holder(self) -> None:
        """Write the process id into the file. A full disk must not prevent a start: then the file stays empty."""
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise

    @property
    def is_in_place(self) -> bool:
        """True if the locked file is still the one in the directory."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._fd))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True  # a failing disk is reported elsewhere

    @property
    def is_held(self) -> bool:
        return self._fd >= 0

    def fileno(self) -> int:
        """Return the descriptor of the lock's file, which is open for as long as the lock is held."""
        return self._fd

    def release(self) -> None:
        """Release the lock; may be called twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def try_lock(call: Callable[[int, int], None], fd: int) -> bool:
    """Acquire one of the two locks. Return False if another process has it."""
    try:
        call(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def in_use_error(directory: Path, holder: str) -> ConfigError:
    return ConfigError(
        f"data directory {directory} is in use by {holder}: stop that broker or choose another directory"
    )
