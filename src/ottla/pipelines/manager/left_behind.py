"""What pipelines have made on servers and does not go away by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ottla.errors import ConfigError
from ottla.pipelines.file.reading import Read, checkpoints_of
from ottla.pipelines.manager.build import surroundings_of
from ottla.pipelines.manager.home import Home
from ottla.pipelines.sources import Source
from ottla.pipelines.surroundings import INPUTS, Surroundings


def left_behind(read: Read) -> Iterator[str]:
    """Each thing in a few words."""
    for source, around in sources_of(read):
        yield from source.left_behind(around)


def clean_up(read: Read) -> None:
    """Take it away; ConfigError while the pipeline is run."""
    if Home(checkpoints_of(read), read.name).is_taken():
        raise ConfigError(f"pipeline {read.name!r} is being run; stop it first")
    for source, around in sources_of(read):
        source.clean(around)


def sources_of(read: Read) -> Iterator[tuple[Source, Surroundings]]:
    """The source and the other inputs, each with its home."""
    around = surroundings_of(read)
    yield read.model.source, around
    for name, source in read.model.inputs.items():
        yield source, replace(around, home=around.home / INPUTS / name)
