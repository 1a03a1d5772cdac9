"""An open file that is closed with its last reference.

A segment may be deleted while slices of it are still being sent: each slice holds this object, and the descriptor is closed with the
last of them.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ottla.storage.files.regular_file import open_regular

READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class OpenFile:
    """A descriptor for positioned reads and writes; there is no shared position.

    With `create` the file is new or truncated. A file that cannot be opened for writing is opened read-only, unless `write`; with `read`
    it always is read-only. With `folder` it is a directory, and its files can be opened even after it was renamed. Otherwise anything that
    is not a regular file raises NoFileError.
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
    """Write all bytes at `position`; repeat the call while the system writes only a part."""
    written = os.pwrite(fd, data, position)
    while written < len(data):
        written += os.pwrite(fd, data[written:], position + written)
