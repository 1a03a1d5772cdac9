"""Where the rows of a pipeline come from: one file for each `type`."""

from __future__ import annotations

from ottla.pipelines.installed import installed
from ottla.pipelines.sources.database import DatabaseSource
from ottla.pipelines.sources.files import FilesSource
from ottla.pipelines.sources.http import HttpSource
from ottla.pipelines.sources.postgres_cdc import PostgresCdcSource
from ottla.pipelines.sources.rate import RateSource
from ottla.pipelines.sources.source import Source
from ottla.pipelines.sources.topic import TopicSource

SOURCES: dict[str, type[Source]] = {
    "topic": TopicSource,
    "files": FilesSource,
    "database": DatabaseSource,
    "postgres-cdc": PostgresCdcSource,
    "http": HttpSource,
    "rate": RateSource,
}
SOURCES |= installed("ottla.pipelines.sources", Source, SOURCES)
"""By what `type` says."""

__all__ = ["SOURCES", "DatabaseSource", "FilesSource", "RateSource", "Source", "TopicSource"]
