"""Objects that pipelines created on servers, and that are not deleted automatically."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ottla.errors import ConfigError
from ottla.pipelines.file.reading import PipelineDefinition, checkpoints_of
from ottla.pipelines.manager.build import context_of
from ottla.pipelines.manager.state_directory import StateDirectory
from ottla.pipelines.pipeline_context import INPUTS, PipelineContext
from ottla.pipelines.sources import Source


def find_leftovers(read: PipelineDefinition) -> Iterator[str]:
    """Yield a short description of each object."""
    for source, context in sources_of(read):
        yield from source.find_leftovers(context)


def delete_leftovers(read: PipelineDefinition) -> None:
    """Delete the objects; ConfigError while the pipeline is run."""
    if StateDirectory(checkpoints_of(read), read.name).is_locked():
        raise ConfigError(f"pipeline {read.name!r} is being run; stop it first")
    for source, context in sources_of(read):
        source.clean(context)


def sources_of(read: PipelineDefinition) -> Iterator[tuple[Source, PipelineContext]]:
    """Yield the source and the other inputs, each with its context."""
    context = context_of(read)
    yield read.model.source, context
    for name, source in read.model.inputs.items():
        yield source, replace(context, home=context.home / INPUTS / name)
