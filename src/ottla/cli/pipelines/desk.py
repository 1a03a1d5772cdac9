"""The pipelines that `ottla console --pipelines` shows: what `ottla pipeline status` prints, and what `pause`, `resume` and `dead-letters resend` do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.pipelines.control import STATUS, now_held, now_resumed, resent, status_row
from ottla.cli.tables import objects
from ottla.errors import ConfigError, OttlaError

if TYPE_CHECKING:
    from ottla.pipelines.file.reading import Read
    from ottla.pipelines.manager.home import Home


class PipelineDesk:
    """Reads the files anew for each question, as the commands do."""

    def __init__(self, where: Path) -> None:
        self._where = where

    def status(self) -> list[dict[str, Any]]:
        from ottla.pipelines.file.reading import AS_WRITTEN, checkpoints_of, read_pipelines
        from ottla.pipelines.manager.home import Home

        reads = read_pipelines(self._where, AS_WRITTEN)
        return objects(STATUS, [status_row(Home(checkpoints_of(read), read.name)) for read in reads])

    def resend(self, name: str) -> str:
        from ottla.pipelines.manager.letters import resend

        return resent(resend(*self._meant(name)))

    def pause(self, name: str) -> str:
        return now_held(self._meant(name)[1], "paused", "pause")

    def resume(self, name: str) -> str:
        try:
            return now_resumed(self._meant(name)[1])
        except click.ClickException as error:
            raise OttlaError(error.message) from None

    def _meant(self, name: str) -> tuple[Read, Home]:
        from ottla.pipelines.file.reading import AS_WRITTEN, checkpoints_of, read_pipelines
        from ottla.pipelines.manager.home import Home

        reads = {read.name: read for read in read_pipelines(self._where, AS_WRITTEN)}
        if name not in reads:
            raise ConfigError(f"there is no pipeline {name!r} in {self._where}, only {', '.join(reads)}")
        return reads[name], Home(checkpoints_of(reads[name]), name)
