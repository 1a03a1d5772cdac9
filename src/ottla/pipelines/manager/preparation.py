"""What comes before Spark: the folders of the pipelines are held, their databases can be opened, and their topics are there.

Spark takes seconds to start. Whoever has to be refused without it is refused at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ottla.pipelines.file.reading import Read, checkpoints_of
from ottla.pipelines.manager.databases import ensure_databases
from ottla.pipelines.manager.home import Home
from ottla.pipelines.manager.topics import ensure_topics

Homes = dict[str, Home]
"""By the names of the pipelines."""


def prepare(reads: Sequence[Read]) -> Homes:
    """All are held, or none; ConfigError where somebody else runs one, PipelineFileError where a database or topic is missing."""
    homes = {read.name: Home(checkpoints_of(read), read.name) for read in reads}
    try:
        for home in homes.values():
            home.take()
        ensure_databases(reads)
        ensure_topics(reads)
    except BaseException:
        give_back(homes)
        raise
    return homes


def give_back(homes: Homes) -> None:
    """Let others run them; those that were given back before stay so."""
    for home in homes.values():
        home.give_back()


@contextmanager
def prepared(reads: Sequence[Read]) -> Iterator[Homes]:
    """As `prepare`, until the end of the `with` statement."""
    homes = prepare(reads)
    try:
        yield homes
    finally:
        give_back(homes)
