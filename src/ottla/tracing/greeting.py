"""Who listens at a socket of the folder: the other side of `trace_socket`, for whoever comes to look."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

LONGEST_LINE = 64 * 1024
"""Of the first line; what says more is none of ours."""


def greeted(path: Path, patience: float) -> tuple[socket.socket, dict[str, Any]]:
    """A connection and who says to be there, all that follows still unread; OSError where nobody is, ValueError where somebody else is."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(patience)
        connection.connect(str(path))
        return connection, hello_of(first_line(connection))
    except BaseException:
        connection.close()
        raise


def first_line(connection: socket.socket) -> bytes:
    """Up to its end, and nothing after it."""
    line = bytearray()
    while len(line) < LONGEST_LINE and not line.endswith(b"\n") and (byte := connection.recv(1)):
        line += byte
    return bytes(line)


def hello_of(line: bytes) -> dict[str, Any]:
    said = json.loads(line)
    if not isinstance(said, dict):
        raise ValueError(f"{said!r} is nobody's name")
    return said
