"""Checks the databases of pipelines before Spark is started, which takes seconds."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.pipelines.databases.database import DatabaseError
from ottla.pipelines.file.reading import PipelineDefinition
from ottla.pipelines.manager.build import at_place, context_of
from ottla.pipelines.place import Mistake, PipelineFileError
from ottla.pipelines.sinks import Sink
from ottla.pipelines.sources import Source


def ensure_databases(reads: Sequence[PipelineDefinition]) -> None:
    """Raise PipelineFileError for each database that cannot be opened, or without its driver."""
    mistakes: list[Mistake] = []
    for read in reads:
        parts: list[tuple[tuple[str, ...], Source | Sink]] = [(("source",), read.model.source)]
        parts += [(("inputs", name), part) for name, part in read.model.inputs.items()]
        for path, part in [*parts, (("sink",), read.model.sink)]:
            try:
                with at_place(read, *path):
                    part.try_to_open(context_of(read))
            except PipelineFileError as error:
                mistakes += error.mistakes
    if mistakes:
        raise PipelineFileError(mistakes)


def check_servers(reads: Sequence[PipelineDefinition]) -> tuple[list[Mistake], list[Mistake]]:
    """Return the mistakes that the servers of sources report, and the checks that failed because a server is not available."""
    wrong, unchecked = list[Mistake](), list[Mistake]()
    for read in reads:
        inputs = ((("inputs", name), part) for name, part in read.model.inputs.items())
        parts: list[tuple[tuple[str, ...], Source]] = [(("source",), read.model.source), *inputs]
        for path, part in parts:
            try:
                with at_place(read, *path):
                    part.check_server(context_of(read))
            except PipelineFileError as error:
                (unchecked if isinstance(error.__cause__, DatabaseError) else wrong).extend(error.mistakes)
    return wrong, unchecked
