"""Traced programs: the sockets in a folder, and their events (decision 0072).

Only reads: it joins no group and sends nothing. A socket of a killed process refuses connections and is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import ottla.client.consumer.events
import ottla.client.producer.batch_events  # noqa: F401  needed to restore their events
from ottla.console.views import View
from ottla.errors import OttlaError
from ottla.tracing.frames import FACTS, frame_of, restore_frame
from ottla.tracing.frames import encode_line as written
from ottla.tracing.greeting import connect_and_read_hello

PATIENCE_SECONDS = 1.0
"""The time for a program to send its greeting."""
LONGEST_LINE = 32 * 1024 * 1024
"""The limit of a line, which has the events of a tenth of a second and all parts."""


class NotTracedError(OttlaError):
    """Raised if no traced client has that name."""


class Traced:
    """The traced clients of one folder; without a folder there are none."""

    def __init__(self, folder: str | None) -> None:
        self.folder = None if folder is None else Path(folder)

    def clients(self) -> View:
        """Return the clients that can be traced."""
        seen = [
            {"name": path.stem, **hello} for path in self._sockets() if (hello := greeting_or_none(path)) is not None
        ]
        return {"folder": None if self.folder is None else str(self.folder), "clients": seen}

    async def lines(self, name: str) -> AsyncIterator[str]:
        """Yield the lines of a client until it closes."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(self.path_of(name)), limit=LONGEST_LINE)
        except OSError:
            raise not_traced_error(name) from None
        try:
            while line := await reader.readline():
                yield complete_line(line)
        finally:
            writer.close()

    def path_of(self, name: str) -> Path:
        """Return the socket path of a client; raise NotTracedError for any other name."""
        for path in self._sockets():
            if path.stem == name:
                return path
        raise not_traced_error(name)

    def _sockets(self) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob("*.sock"))


def complete_line(line: bytes) -> str:
    """Return a line in the format of the page and of recordings."""
    frame = frame_of(line)
    frame.pop(FACTS, None)
    return written(restore_frame(frame)).decode().rstrip("\n")


def not_traced_error(name: str) -> NotTracedError:
    return NotTracedError(f"there is no traced client {name!r}, or it has stopped: reload the list")


def greeting_or_none(path: Path) -> dict[str, Any] | None:
    """Return the greeting of the program at a socket, or None if it does not answer."""
    try:
        connection, hello = connect_and_read_hello(path, PATIENCE_SECONDS)
    except (OSError, ValueError):
        return None
    connection.close()
    hello.pop(FACTS, None)
    return hello
