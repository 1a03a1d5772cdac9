"""Databases of pipelines, which are asked before Spark, which takes seconds, is started."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.pipelines.databases.database import DatabaseError
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


def check_servers(reads: Sequence[Read]) -> tuple[list[Mistake], list[Mistake]]:
    """Return what the servers of sources say is wrong with them, and what could not be checked because a server cannot be asked."""
    wrong, unchecked = list[Mistake](), list[Mistake]()
    for read in reads:
        inputs = ((("inputs", name), part) for name, part in read.model.inputs.items())
        parts: list[tuple[tuple[str, ...], Source]] = [(("source",), read.model.source), *inputs]
        for path, part in parts:
            try:
                with placed(read, *path):
                    part.check_server(surroundings_of(read))
            except PipelineFileError as error:
                (unchecked if isinstance(error.__cause__, DatabaseError) else wrong).extend(error.mistakes)
    return wrong, unchecked
