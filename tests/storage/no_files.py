"""What is no file under the name of one."""

from __future__ import annotations

import os
import socket
from contextlib import chdir
from pathlib import Path


def in_the_place_of(path: Path, kind: str) -> None:
    """Let a folder, a pipe, a socket or a device have the name of a file, or a link that leads to itself."""
    path.unlink(missing_ok=True)
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as bound, chdir(path.parent):  # whose names are short
            bound.bind(path.name)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to(path.name)
