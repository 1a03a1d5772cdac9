"""An open file that closes when nobody needs it any more.

A segment may be deleted while slices of it still travel to sockets: they hold this object, and the descriptor
goes with the last of them.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ottla.storage.files.regular_file import open_regular

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class OpenFile:
    """A descriptor for positioned reads and writes; there is no shared position.

    With `create` it is empty, and where that fails there is none: both are one call. Where the system lets nobody write it is open for reading alone, unless it must be written; with `read` it always is.
    A `folder` is held to open files in it, whatever it is called by then; anything else is a file, or NoFileError.
    """

    __slots__ = ("_fd", "writable")

    def __init__(
        self,
        path: Path | str,
        *,
        create: bool = False,
        write: bool = False,
        read: bool = False,
        folder: bool = False,
    ) -> None:
        self._fd = -1
        self.writable = not (read or folder)
        if folder:
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            return
        if read:
            self._fd = open_regular(path, os.O_RDONLY)
            return
        try:
            self._fd = open_regular(path, os.O_RDWR | (os.O_CREAT | os.O_TRUNC if create else 0), 0o644)
        except OSError as error:
            if create or write or error.errno not in READ_ONLY:
                raise
            self._fd = open_regular(path, os.O_RDONLY)
            self.writable = False

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def write_all(fd: int, data: memoryview, position: int) -> None:
    """Write every byte at `position`, however few the system takes at a time."""
    written = os.pwrite(fd, data, position)
    while written < len(data):
        written += os.pwrite(fd, data[written:], position + written)
