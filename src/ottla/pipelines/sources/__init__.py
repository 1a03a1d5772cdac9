"""The sources of pipelines: one file for each `type`."""

from __future__ import annotations

from ottla.pipelines.installed import load_connectors
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
SOURCES |= load_connectors("ottla.pipelines.sources", Source, SOURCES)
"""The sources by the value of `type`."""

__all__ = ["SOURCES", "DatabaseSource", "FilesSource", "RateSource", "Source", "TopicSource"]
