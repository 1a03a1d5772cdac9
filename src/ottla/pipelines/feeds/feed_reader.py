"""A feed as a streaming source of Spark: the rows of each micro-batch.

The reader lives in one Python process of the driver (Spark's `PythonStreamingSourceRunner`). Spark's
`MicroBatchExecution` calls `latestOffset` for a batch only after the previous batch is in the commit log. Therefore
`latestOffset` is the point at which the rows of the previous batch are deleted and the source may release them
(`release`). If the feed can go ahead, the next rows are fetched while Spark runs a batch, and the next batch has all
rows fetched by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from ottla.pipelines.feeds.feed import Feed, Position
from ottla.pipelines.feeds.fetch_ahead import FetchAhead
from ottla.pipelines.feeds.spool import Spool
from ottla.spark.failure import without_traceback

MOST_ROWS = 100_000
"""The most rows of a batch. A poll that returns more is divided into several batches."""


@dataclass(frozen=True)
class FeedOffset:
    """The progress of a query, as stored in Spark's offset log."""

    number: int = 0
    """The number of the batch that ends here."""
    position: Position | None = None
    files: tuple[str, ...] = ()
    """The files with the rows of the batch, in order."""
    rest: tuple[str, ...] = ()
    """Files with further rows up to the same position, one for each of the next batches."""
    dead_letters: int = 0
    """Rows of the batch that were put aside."""

    @property
    def place(self) -> FeedOffset:
        """The offset without the rows of its batch."""
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
        files = (
            known["files"] if "files" in known else [known["file"]] if known["file"] else []
        )  # earlier versions wrote one file
        return cls(known["number"], known["position"], tuple(files), tuple(known["rest"]), known.get("deadLetters", 0))


class Fetched(NamedTuple):
    """The result of a poll."""

    offset: FeedOffset | None
    """The position after the rows; None if there are none."""
    is_full: bool = False
    """True if the poll returned as many rows as it may, so that more can be expected."""


class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The offsets and tasks of a streaming query."""

    def __init__(self, feed: Feed, spool: Spool) -> None:
        self.feed, self.spool = feed, spool

    @cached_property
    def _ahead(self) -> FetchAhead[FeedOffset, Fetched]:
        """Return the thread of the feed. It is made on first use: tasks receive a pickled copy of an unused reader."""
        return FetchAhead(self.fetch, self.next_place, max(1, self.feed.most // self.feed.portion))

    def initialOffset(self) -> dict[str, Any]:
        return FeedOffset().to_dict()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Read only the rows that exist now, and end the query after them."""
        with without_traceback():
            self._ahead.call_in_thread(self.feed.freeze)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Fetch the rows of the next batch and return its end; return `start` if there are none."""
        with without_traceback():
            before = FeedOffset.from_dict(start)
            self.spool.delete_up_to(before.number)
            if before.rest:
                files, rest = before.rest[:1], before.rest[1:]
                return replace(before, number=before.number + 1, files=files, rest=rest, dead_letters=0).to_dict()
            if not self.feed.fetches_ahead:
                self._ahead.call_in_thread(self.feed.release, before.position)
            found = self._ahead.fetch_next(before.place)
            after = join_offsets(one.offset for one in found if one.offset is not None)
            return start if after is None else after.to_dict()

    def fetch(self, before: FeedOffset) -> Fetched:
        """Poll the rows after `before` and store them in files. Runs in the feed's thread."""
        files = self.spool.create_files(before.number + 1, self.feed.portion)
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

    def next_place(self, found: Fetched) -> FeedOffset | None:
        """Return the place from which more can be fetched ahead, or None."""
        if found.offset is None or not found.is_full or not self.feed.fetches_ahead:
            return None
        return found.offset.place

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        files = FeedOffset.from_dict(end).files
        return [InputPartition(files)] if files else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with without_traceback():
            for name in partition.value:
                yield from self.spool.read(name)

    def stop(self) -> None:
        self._ahead.end_thread(self.feed.close)


def join_offsets(offsets: Iterable[FeedOffset]) -> FeedOffset | None:
    """Return one batch with the rows of consecutive polls; None if there are none."""
    all_of_them = list(offsets)
    if not all_of_them:
        return None
    files = tuple(name for one in all_of_them for name in one.files)
    return replace(all_of_them[-1], files=files, dead_letters=sum(one.dead_letters for one in all_of_them))
