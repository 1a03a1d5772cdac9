"""Prepares pipelines before Spark starts: locks their state directories, checks databases and schemas, and creates topics.

Spark takes seconds to start, so mistakes that can be found without it are reported first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ottla.pipelines.file.reading import PipelineDefinition, checkpoints_of
from ottla.pipelines.manager.databases import ensure_databases
from ottla.pipelines.manager.registered_schemas import ensure_schemas
from ottla.pipelines.manager.state_directory import StateDirectory
from ottla.pipelines.manager.topics import ensure_topics

StateDirectories = dict[str, StateDirectory]
"""The state directories by the names of the pipelines."""


def prepare(reads: Sequence[PipelineDefinition]) -> StateDirectories:
    """Lock all directories, or none; ConfigError if one is locked, PipelineFileError if a database, a topic or a schema is missing."""
    homes = {read.name: StateDirectory(checkpoints_of(read), read.name) for read in reads}
    try:
        for home in homes.values():
            home.lock()
        ensure_databases(reads)
        ensure_topics(reads)
        ensure_schemas(reads)
    except BaseException:
        unlock(homes)
        raise
    return homes


def unlock(homes: StateDirectories) -> None:
    """Release the locks that are still held."""
    for home in homes.values():
        home.unlock()


@contextmanager
def prepare_in_block(reads: Sequence[PipelineDefinition]) -> Iterator[StateDirectories]:
    """Call `prepare`, and release the locks at the end of the block."""
    homes = prepare(reads)
    try:
        yield homes
    finally:
        unlock(homes)
