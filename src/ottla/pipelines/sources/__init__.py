"""Where the rows of a pipeline come from: one file for each `type`."""

from __future__ import annotations

from ottla.pipelines.sources.files import FilesSource
from ottla.pipelines.sources.rate import RateSource
from ottla.pipelines.sources.source import Source
from ottla.pipelines.sources.topic import TopicSource

SOURCES: dict[str, type[Source]] = {"topic": TopicSource, "files": FilesSource, "rate": RateSource}
"""By what `type` says."""

__all__ = ["SOURCES", "FilesSource", "RateSource", "Source", "TopicSource"]
