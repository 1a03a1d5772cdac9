"""A feed as a stream of Spark: which rows each micro-batch has.

Lives in one process of the driver. Spark asks for the next batch when the one before is in the sink, and only then are its rows
forgotten and the source told. Where a batch is full, the next is fetched meanwhile, if the feed can (`ahead`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from ottla.pipelines.feeds.ahead import Ahead
from ottla.pipelines.feeds.feed import Feed, Position
from ottla.pipelines.feeds.spool import Spool
from ottla.spark.failure import plainly

MOST_ROWS = 100_000
"""Of a batch: what a feed gives at once may be more, and is then several."""


@dataclass(frozen=True)
class FeedOffset:
    """How far a query is, as Spark keeps it."""

    number: int = 0
    """Of the batch that ends here."""
    position: Position | None = None
    file: str | None = None
    """Where its rows are; None where it has none."""
    rest: tuple[str, ...] = ()
    """Files with rows up to the same position, which are the next batches."""

    def to_dict(self) -> dict[str, Any]:
        return {"number": self.number, "position": self.position, "file": self.file, "rest": list(self.rest)}

    @classmethod
    def from_dict(cls, known: dict[str, Any]) -> FeedOffset:
        return cls(known["number"], known["position"], known["file"], tuple(known["rest"]))


class Fetched(NamedTuple):
    """What a feed was asked for."""

    offset: FeedOffset | None
    """How far its rows go; None where nothing is new."""
    is_full: bool = False
    """Whether these are all rows that a batch may have, so that there will be more."""


class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets and tasks of a streaming query."""

    def __init__(self, feed: Feed, spool: Spool, most: int = MOST_ROWS) -> None:
        self.feed, self.spool, self.most = feed, spool, most
        self._ahead: Ahead[FeedOffset, Fetched] = Ahead()

    def initialOffset(self) -> dict[str, Any]:
        return FeedOffset().to_dict()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """The query reads what is there now, and ends."""
        with plainly():
            self._ahead.call(self.feed.freeze)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch, whose rows are fetched; `start` itself when there is nothing new."""
        with plainly():
            before = FeedOffset.from_dict(start)
            self.spool.forget(before.number)
            if before.rest:
                return replace(before, number=before.number + 1, file=before.rest[0], rest=before.rest[1:]).to_dict()
            self._ahead.call(self.feed.settle, before.position)
            after, is_full = self._ahead.take(before, self.fetch)
            if after is None:
                return start
            if is_full and self.feed.goes_ahead:
                self._ahead.begin(after, self.fetch)
            return after.to_dict()

    def fetch(self, before: FeedOffset) -> Fetched:
        """The rows after `before`, kept in files; in the feed's thread."""
        files = self.spool.begin(before.number + 1, self.most)
        try:
            position = self.feed.poll(before.position, files.write)
            names = files.finish()
        except BaseException:
            files.abandon()
            raise
        if not names:
            return Fetched(None if position == before.position else FeedOffset(before.number + 1, position))
        after = FeedOffset(before.number + 1, position, names[0], tuple(names[1:]))
        return Fetched(after, files.is_full and not after.rest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        file = FeedOffset.from_dict(end).file
        return [] if file is None else [InputPartition(file)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with plainly():
            yield from self.spool.read(str(partition.value))

    def stop(self) -> None:
        self._ahead.end(self.feed.close)
