"""A source that is asked for rows as Spark asks it, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable

from ottla.pipelines.dead_letters import DeadLetterTopic
from ottla.pipelines.feeds.feed_reader import FeedReader
from ottla.pipelines.feeds.feed_source import SPOOL
from ottla.pipelines.feeds.spool import Spool
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.sources.fed import FedSource
from tests.patience import eventually


class Asked:
    """One life of a query after the other, on a log of offsets as Spark keeps it."""

    def __init__(self, folder: Path, dead_letters: DeadLetterTopic | None = None) -> None:
        self.folder, self.dead_letters = folder, dead_letters
        self.log: list[dict[str, Any]] = []
        self._readers: list[FeedReader] = []

    def reader(self, source: FedSource, **secrets: str) -> FeedReader:
        """A reader as Spark makes it, with the folder as the pipeline's and its file's."""
        known = Secrets(secrets, self.folder)
        context = PipelineContext(
            folder=self.folder,
            home=self.folder,
            dead_letters=self.dead_letters,
            resolve=known.resolve,
            resolve_address=known.resolve_address,
        )
        feed, columns = source.feed(context)
        self._readers.append(FeedReader(feed, Spool(self.folder / SPOOL, to_arrow_schema(columns, timezone="UTC"))))
        return self._readers[-1]

    def stop(self) -> None:
        for reader in self._readers:
            reader.stop()

    def next(self, reader: FeedReader) -> list[dict[str, Any]]:
        """The rows of the next batch; none where there is none."""
        start = self.log[-1] if self.log else reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        if end == start:
            return []
        self.log.append(end)
        return self.again(reader)

    def again(self, reader: FeedReader) -> list[dict[str, Any]]:
        """The rows of the last batch, once more."""
        before: Mapping[str, Any] = self.log[-2] if len(self.log) > 1 else reader.initialOffset()
        found: list[dict[str, Any]] = []
        for part in reader.partitions(dict(before), self.log[-1]):
            for batch in reader.read(part):
                found += batch.to_pylist()
        return found

    def all(self, reader: FeedReader) -> list[dict[str, Any]]:
        """All rows until there are no more."""
        found: list[dict[str, Any]] = []
        while rows := self.next(reader):
            found += rows
        return found

    def awaited(self, reader: FeedReader, count: int) -> list[dict[str, Any]]:
        """Return this many rows, after several polls if necessary: a database may still consider another transaction
        open.
        """
        found: list[dict[str, Any]] = []

        def have_come() -> bool:
            found.extend(self.all(reader))
            return len(found) >= count

        eventually(have_come)
        return found
