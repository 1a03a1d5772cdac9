"""The guided tour in the console: the process of one chapter, its steps so far, and its control.

 The chapters are in `ottla.tour`, which starts brokers; the console uses only its command line. One chapter plays at a
time.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from ottla.console.traced import Traced
from ottla.errors import OttlaError

COMMAND = (sys.executable, "-m", "ottla.tour")
PATIENCE_SECONDS = 5.0
"""The time for a chapter to end by itself, and then to end after SIGTERM."""


class NoChapterError(OttlaError):
    """Raised if no chapter plays, or if the name is unknown."""


class Tour:
    """The chapters and the playing one; used in one event loop, `close` stops the chapter."""

    def __init__(self) -> None:
        self._chapters: list[dict[str, str]] = []
        self._playing: Playing | None = None

    async def chapters(self) -> list[dict[str, str]]:
        """Return the names and titles of the chapters."""
        if not self._chapters:
            process = await asyncio.create_subprocess_exec(*COMMAND, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
            output, _ = await process.communicate()
            self._chapters = json.loads(output)["chapters"]
        return self._chapters

    @property
    def clients(self) -> Traced:
        """The traced clients of the chapter that plays."""
        return Traced(None if self._playing is None else self._playing.folder)

    async def play(self, name: Any) -> None:
        """Start a chapter; stop the one that plays."""
        if name not in [each["name"] for each in await self.chapters()]:
            raise NoChapterError(f"there is no chapter {name!r}; choose one on the tour's page")
        await self.close()
        folder = tempfile.mkdtemp(prefix="ottla-tour-")
        environment = {**os.environ, "OTTLA_TRACE": folder}
        process = await asyncio.create_subprocess_exec(
            *COMMAND, name, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
        )
        self._playing = Playing(process, folder)

    def continue_chapter(self) -> None:
        """Continue with the next step."""
        if self._playing is None or self._playing.ended:
            raise NoChapterError("no chapter plays: start one")
        self._playing.continue_chapter()

    async def lines(self) -> AsyncIterator[str]:
        """Yield all lines of the playing chapter, past and future, until it ends."""
        if self._playing is not None:
            async for line in self._playing.lines():
                yield line

    async def close(self) -> None:
        """Stop the chapter that plays, with its broker; may be called again."""
        playing, self._playing = self._playing, None
        if playing is not None:
            await playing.close()


class Playing:
    """The process of one chapter."""

    def __init__(self, process: Process, folder: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.folder = folder
        self.ended = False
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._lines: list[str] = []
        self._more = asyncio.Condition()
        self._reading = asyncio.create_task(self._read_lines())

    async def _read_lines(self) -> None:
        async for line in self._stdout:
            async with self._more:
                self._lines.append(line.decode().rstrip("\n"))
                self._more.notify_all()
        async with self._more:
            self.ended = True
            self._more.notify_all()

    def continue_chapter(self) -> None:
        self._stdin.write(b"\n")

    async def lines(self) -> AsyncIterator[str]:
        """Yield all lines from the first on; several readers are possible."""
        at = 0
        while True:
            async with self._more:
                while at == len(self._lines) and not self.ended:
                    await self._more.wait()
            if at == len(self._lines):
                return
            yield self._lines[at]
            at += 1

    async def close(self) -> None:
        self._stdin.close()  # the process ends when its input ends
        for insist in (self._process.terminate, self._process.kill):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), PATIENCE_SECONDS)
                break
            with suppress(ProcessLookupError):
                insist()
        await self._process.wait()
        await self._reading
        shutil.rmtree(self.folder, ignore_errors=True)
