"""Connect to a trace socket and read its first line: the reader's side of `trace_socket`."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

LONGEST_LINE = 64 * 1024
"""The maximum length of the first line; a longer one is from another program."""


def connect_and_read_hello(path: Path, patience: float) -> tuple[socket.socket, dict[str, Any]]:
    """Return a connection and its first line, with all later lines unread.

    Raises OSError if no process listens, ValueError if the first line is malformed.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(patience)
        connection.connect(str(path))
        return connection, parse_hello(read_first_line(connection))
    except BaseException:
        connection.close()
        raise


def read_first_line(connection: socket.socket) -> bytes:
    """Read up to the end of the first line, and nothing after it."""
    line = bytearray()
    while len(line) < LONGEST_LINE and not line.endswith(b"\n") and (byte := connection.recv(1)):
        line += byte
    return bytes(line)


def parse_hello(line: bytes) -> dict[str, Any]:
    said = json.loads(line)
    if not isinstance(said, dict):
        raise ValueError(f"not the first line of a trace socket: {said!r}")
    return said
