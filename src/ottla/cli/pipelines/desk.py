"""The pipelines that `ottla console --pipelines` shows: what `ottla pipeline status` prints, and `dead-letters resend`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ottla.cli.pipelines.control import STATUS, resent, status_row
from ottla.cli.tables import objects
from ottla.errors import ConfigError


class PipelineDesk:
    """Reads the files anew for each question, as the commands do."""

    def __init__(self, where: Path) -> None:
        self._where = where

    def status(self) -> list[dict[str, Any]]:
        from ottla.pipelines.file.reading import checkpoints_of, read_pipelines
        from ottla.pipelines.manager.home import Home

        reads = read_pipelines(self._where)
        return objects(STATUS, [status_row(Home(checkpoints_of(read), read.name)) for read in reads])

    def resend(self, name: str) -> str:
        from ottla.pipelines.file.reading import checkpoints_of, read_pipelines
        from ottla.pipelines.manager.home import Home
        from ottla.pipelines.manager.letters import resend

        reads = {read.name: read for read in read_pipelines(self._where)}
        if name not in reads:
            raise ConfigError(f"there is no pipeline {name!r} in {self._where}, only {', '.join(reads)}")
        return resent(resend(reads[name], Home(checkpoints_of(reads[name]), name)))
