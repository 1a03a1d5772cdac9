"""Small files that are whole or not there, and directories that remember their entries after a power cut."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from pathlib import Path

from ottla.storage.files.regular_file import open_regular

LOG = logging.getLogger(__name__)
SYNCFS_TELLS_SINCE = (5, 8)
"""The first Linux version in which `syncfs` reports bytes that did not reach the disk."""


def replace_file(path: Path, text: str, *, sync: bool = True) -> None:
    """Put `text` in place of the file at once: a crash leaves the old text or the new, never a part."""
    draft = f"{path}.tmp"
    write_file(draft, text, sync=sync)
    os.replace(draft, path)
    if sync:
        sync_path(path.parent)


def write_file(path: Path | str, text: str, *, sync: bool = False) -> None:
    """Write a file of `text`: a crash may leave a part."""
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        data = memoryview(text.encode())
        while data:
            data = data[os.write(fd, data) :]
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def sync_path(path: Path) -> None:
    """Force a file's bytes, or a directory's entries, to the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def can_sync_file_system() -> bool:
    """Return True if the system can force a whole file system to the disk and report failures."""
    if sys.platform != "linux":
        return False
    release = os.uname().release.split("-")[0].split(".")
    return tuple(int(number) for number in release[:2] if number.isdigit()) >= SYNCFS_TELLS_SINCE


def sync_file_system(fd: int) -> None:
    """Force all of the file system that holds `fd` to the disk.

    OSError also where bytes were lost at any time since `fd` was opened.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(fd):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def remove_tree(folder: Path) -> None:
    """Remove a directory tree and log what cannot be removed, for another attempt. A tree that does not exist is ignored.

    If `folder` is a link, because an operator moved the directory to another disk, its target and the link are removed.
    """
    place = Path(os.path.realpath(folder))
    shutil.rmtree(place, ignore_errors=True)
    try:
        if place.exists():
            shutil.rmtree(place)  # which now says why
        if folder.is_symlink():
            folder.unlink()
    except FileNotFoundError:
        pass  # Another has removed it meanwhile.
    except OSError as error:
        LOG.error("%s is not needed any more and stays: cannot remove %s: %s", folder, error.filename, error.strerror)
