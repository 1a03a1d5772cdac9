"""Databases of pipelines: each is opened once and closed again before Spark, which takes seconds, is started."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.pipelines.file.reading import Read
from ottla.pipelines.manager.build import placed, surroundings_of
from ottla.pipelines.place import Mistake, PipelineFileError
from ottla.pipelines.sinks import Sink
from ottla.pipelines.sources import Source


def ensure_databases(reads: Sequence[Read]) -> None:
    """PipelineFileError with each that cannot be opened, or for which a driver is missing."""
    mistakes: list[Mistake] = []
    for read in reads:
        parts: list[tuple[tuple[str, ...], Source | Sink]] = [(("source",), read.model.source)]
        parts += [(("inputs", name), part) for name, part in read.model.inputs.items()]
        for path, part in [*parts, (("sink",), read.model.sink)]:
            try:
                with placed(read, *path):
                    part.try_to_open(surroundings_of(read))
            except PipelineFileError as error:
                mistakes += error.mistakes
    if mistakes:
        raise PipelineFileError(mistakes)
