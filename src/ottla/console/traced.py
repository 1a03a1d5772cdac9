"""Programs that let us look into them: the sockets in a folder, and what each tells (decision 0072).

Only looks: joins no group, sends nothing. A socket whose process was killed refuses connections and is passed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import ottla.client.consumer.events
import ottla.client.producer.batch_events  # noqa: F401  whose events they are that are made whole
from ottla.console.views import View
from ottla.errors import OttlaError
from ottla.tracing.frames import FACTS, frame_of, whole
from ottla.tracing.frames import line as written
from ottla.tracing.greeting import greeted

PATIENCE_SECONDS = 1.0
"""How long a program may take to say who it is."""
LONGEST_LINE = 32 * 1024 * 1024
"""Of the events of a tenth of a second, and all parts."""


class NotTracedError(OttlaError):
    """Nobody lets us look who has that name."""


class Traced:
    """The traced clients of one folder; of None there are none."""

    def __init__(self, folder: str | None) -> None:
        self.folder = None if folder is None else Path(folder)

    def clients(self) -> View:
        """Who can be looked at."""
        seen = [{"name": path.stem, **hello} for path in self._sockets() if (hello := maybe_hello(path)) is not None]
        return {"folder": None if self.folder is None else str(self.folder), "clients": seen}

    async def lines(self, name: str) -> AsyncIterator[str]:
        """What a client tells, as it tells it, until it ends."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(self.path_of(name)), limit=LONGEST_LINE)
        except OSError:
            raise not_traced(name) from None
        try:
            while line := await reader.readline():
                yield whole_line(line)
        finally:
            writer.close()

    def path_of(self, name: str) -> Path:
        """The socket of that name; a name that is no file's here leads nowhere."""
        for path in self._sockets():
            if path.stem == name:
                return path
        raise not_traced(name)

    def _sockets(self) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob("*.sock"))


def whole_line(line: bytes) -> str:
    """A line as the page and its recordings have it."""
    frame = frame_of(line)
    frame.pop(FACTS, None)
    return written(whole(frame)).decode().rstrip("\n")


def not_traced(name: str) -> NotTracedError:
    return NotTracedError(f"no traced client is called {name!r}, or it has ended; look at the list again")


def maybe_hello(path: Path) -> dict[str, Any] | None:
    """Who listens there, in its own words; None where nobody answers."""
    try:
        connection, hello = greeted(path, PATIENCE_SECONDS)
    except (OSError, ValueError):
        return None
    connection.close()
    hello.pop(FACTS, None)
    return hello
