"""The guided tour, as the console plays it: a process that is told when to go on, and what it has told so far.

The chapters are in `ottla.tour`, which starts brokers; the console knows it by its command line only. One chapter plays at a time.
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
"""How long a chapter may take to end by itself, and then to end when it is told to."""


class NoChapterError(OttlaError):
    """Nothing plays, or nothing that is called so."""


class Tour:
    """Used in one event loop; `close` ends what plays."""

    def __init__(self) -> None:
        self._chapters: list[dict[str, str]] = []
        self._playing: Playing | None = None

    async def chapters(self) -> list[dict[str, str]]:
        """Names and titles."""
        if not self._chapters:
            process = await asyncio.create_subprocess_exec(*COMMAND, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
            said, _ = await process.communicate()
            self._chapters = json.loads(said)["chapters"]
        return self._chapters

    @property
    def clients(self) -> Traced:
        """Those of the chapter that plays."""
        return Traced(None if self._playing is None else self._playing.folder)

    async def play(self, name: Any) -> None:
        """Begin a chapter, in place of what plays."""
        if name not in [each["name"] for each in await self.chapters()]:
            raise NoChapterError(f"there is no chapter {name!r}; choose one on the tour's page")
        await self.close()
        folder = tempfile.mkdtemp(prefix="ottla-tour-")
        surroundings = {**os.environ, "OTTLA_TRACE": folder}
        process = await asyncio.create_subprocess_exec(
            *COMMAND, name, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=surroundings
        )
        self._playing = Playing(process, folder)

    def go_on(self) -> None:
        """The next step."""
        if self._playing is None or self._playing.ended:
            raise NoChapterError("no chapter plays; begin one")
        self._playing.go_on()

    async def lines(self) -> AsyncIterator[str]:
        """What the chapter that plays has told and tells, until it ends."""
        if self._playing is not None:
            async for line in self._playing.lines():
                yield line

    async def close(self) -> None:
        """End what plays, with its broker; may be called again."""
        playing, self._playing = self._playing, None
        if playing is not None:
            await playing.close()


class Playing:
    """One chapter's process."""

    def __init__(self, process: Process, folder: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.folder = folder
        self.ended = False
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._told: list[str] = []
        self._more = asyncio.Condition()
        self._hearing = asyncio.create_task(self._hear())

    async def _hear(self) -> None:
        async for line in self._stdout:
            async with self._more:
                self._told.append(line.decode().rstrip("\n"))
                self._more.notify_all()
        async with self._more:
            self.ended = True
            self._more.notify_all()

    def go_on(self) -> None:
        self._stdin.write(b"\n")

    async def lines(self) -> AsyncIterator[str]:
        """From the first on, for each who asks."""
        at = 0
        while True:
            async with self._more:
                while at == len(self._told) and not self.ended:
                    await self._more.wait()
            if at == len(self._told):
                return
            yield self._told[at]
            at += 1

    async def close(self) -> None:
        self._stdin.close()  # for which it ends
        for insist in (self._process.terminate, self._process.kill):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), PATIENCE_SECONDS)
                break
            with suppress(ProcessLookupError):
                insist()
        await self._process.wait()
        await self._hearing
        shutil.rmtree(self.folder, ignore_errors=True)
