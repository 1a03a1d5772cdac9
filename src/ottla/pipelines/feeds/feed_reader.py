"""A feed as a stream of Spark: which rows each micro-batch has.

Lives in one process of the driver. Spark asks for the next batch when the one before is in the sink, and only then are its rows
forgotten and the source told. Where there is more, it is fetched meanwhile, if the feed can (`ahead`): the next batch is all that
is there by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
    files: tuple[str, ...] = ()
    """Where its rows are, in their order."""
    rest: tuple[str, ...] = ()
    """Files with rows up to the same position, which are the next batches."""
    dead_letters: int = 0
    """Rows of the batch that were put aside."""

    @property
    def place(self) -> FeedOffset:
        """Where it is, whatever rows came before."""
        return FeedOffset(self.number, self.position)

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "position": self.position,
            "files": list(self.files),
            "rest": list(self.rest),
            "deadLetters": self.dead_letters,
        }

    @classmethod
    def from_dict(cls, known: dict[str, Any]) -> FeedOffset:
        files = known["files"] if "files" in known else [known["file"]] if known["file"] else []  # once it was one
        return cls(known["number"], known["position"], tuple(files), tuple(known["rest"]), known.get("deadLetters", 0))


class Fetched(NamedTuple):
    """What a feed was asked for."""

    offset: FeedOffset | None
    """How far its rows go; None where nothing is new."""
    is_full: bool = False
    """Whether these are all rows that it is asked for at once, so that there will be more."""


class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets and tasks of a streaming query."""

    def __init__(self, feed: Feed, spool: Spool) -> None:
        self.feed, self.spool = feed, spool

    @cached_property
    def _ahead(self) -> Ahead[FeedOffset, Fetched]:
        """Made when it is first needed: tasks are given a copy of a reader that has asked for nothing."""
        return Ahead(self.fetch, self.following, max(1, self.feed.most // self.feed.portion))

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
                files, rest = before.rest[:1], before.rest[1:]
                return replace(before, number=before.number + 1, files=files, rest=rest, dead_letters=0).to_dict()
            if not self.feed.goes_ahead:
                self._ahead.call(self.feed.settle, before.position)
            found = self._ahead.take(before.place)
            after = joined(one.offset for one in found if one.offset is not None)
            return start if after is None else after.to_dict()

    def fetch(self, before: FeedOffset) -> Fetched:
        """The rows after `before`, kept in files; in the feed's thread."""
        files = self.spool.begin(before.number + 1, self.feed.portion)
        put_aside = self.feed.dead_letters
        try:
            position = self.feed.poll(before.position, files.write)
            names = files.finish()
        except BaseException:
            files.abandon()
            raise
        put_aside = self.feed.dead_letters - put_aside
        if not names:
            after = FeedOffset(before.number + 1, position, dead_letters=put_aside)
            return Fetched(None if position == before.position else after)
        after = FeedOffset(before.number + 1, position, tuple(names[:1]), tuple(names[1:]), put_aside)
        return Fetched(after, files.is_full and not after.rest)

    def following(self, found: Fetched) -> FeedOffset | None:
        """From where more may be fetched already."""
        if found.offset is None or not found.is_full or not self.feed.goes_ahead:
            return None
        return found.offset.place

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        files = FeedOffset.from_dict(end).files
        return [InputPartition(files)] if files else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with plainly():
            for name in partition.value:
                yield from self.spool.read(name)

    def stop(self) -> None:
        self._ahead.end(self.feed.close)


def joined(offsets: Iterable[FeedOffset]) -> FeedOffset | None:
    """One batch of the rows up to each, which come one after the other; None where there is nothing."""
    all_of_them = list(offsets)
    if not all_of_them:
        return None
    files = tuple(name for one in all_of_them for name in one.files)
    return replace(all_of_them[-1], files=files, dead_letters=sum(one.dead_letters for one in all_of_them))
