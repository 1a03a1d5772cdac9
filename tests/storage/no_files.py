"""Objects that are not regular files, under the name of a file."""

from __future__ import annotations

import os
import socket
from contextlib import chdir
from pathlib import Path


def in_the_place_of(path: Path, kind: str) -> None:
    """Give the name of a file to a folder, a pipe, a socket or a device, or to a link that points to itself."""
    path.unlink(missing_ok=True)
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as bound, chdir(path.parent):  # because the names of sockets must be short
            bound.bind(path.name)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to(path.name)
