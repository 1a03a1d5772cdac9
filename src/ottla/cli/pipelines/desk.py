"""The pipelines of `ottla console --pipelines`.

It provides `ottla pipeline status`, `pause`, `resume` and `dead-letters resend`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.pipelines.control import STATUS, resend_summary, resume_pipeline, set_state, status_row
from ottla.cli.tables import to_objects
from ottla.errors import ConfigError, OttlaError

if TYPE_CHECKING:
    from ottla.pipelines.file.reading import PipelineDefinition
    from ottla.pipelines.manager.state_directory import StateDirectory


class PipelineDesk:
    """Access to pipelines by name. The files are read again for each call, as the commands do."""

    def __init__(self, where: Path) -> None:
        self._where = where

    def status(self) -> list[dict[str, Any]]:
        from ottla.pipelines.file.reading import AS_WRITTEN, checkpoints_of, read_pipelines
        from ottla.pipelines.manager.state_directory import StateDirectory

        reads = read_pipelines(self._where, AS_WRITTEN)
        return to_objects(STATUS, [status_row(StateDirectory(checkpoints_of(read), read.name)) for read in reads])

    def resend(self, name: str) -> str:
        from ottla.pipelines.manager.dead_letters import resend

        return resend_summary(resend(*self._find_pipeline(name)))

    def pause(self, name: str) -> str:
        return set_state(self._find_pipeline(name)[1], "paused", "pause")

    def resume(self, name: str) -> str:
        try:
            return resume_pipeline(self._find_pipeline(name)[1])
        except click.ClickException as error:
            raise OttlaError(error.message) from None

    def _find_pipeline(self, name: str) -> tuple[PipelineDefinition, StateDirectory]:
        from ottla.pipelines.file.reading import AS_WRITTEN, checkpoints_of, read_pipelines
        from ottla.pipelines.manager.state_directory import StateDirectory

        reads = {read.name: read for read in read_pipelines(self._where, AS_WRITTEN)}
        if name not in reads:
            raise ConfigError(f"there is no pipeline {name!r} in {self._where}, only {', '.join(reads)}")
        return reads[name], StateDirectory(checkpoints_of(reads[name]), name)
