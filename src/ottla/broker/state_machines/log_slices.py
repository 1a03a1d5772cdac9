"""Reads parts of a log into memory."""

from __future__ import annotations

import os

from ottla.model import FileSlice

READ_BYTES = 1024 * 1024


def read_slice(chunk: FileSlice) -> bytes:
    """Read a slice of a log into memory."""
    return os.pread(chunk.file.fileno(), chunk.size, chunk.position)
