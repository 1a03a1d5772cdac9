"""A search for the oldest or the newest records of a topic that match, over all of its partitions.

`find_oldest` reads forward from a position of each partition, `find_newest` backward from its end in windows that grow, since a fetch reads
forward only. Each partition contributes the records that come first in that direction, and these are merged by timestamp. Within a
partition offsets decide. A partition is left as soon as nothing in it can belong to the result any more, assuming that timestamps in a
partition grow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer, ConsumerRecord
    from ottla.console.record_view import RecordCondition

SEARCH_SECONDS = 5.0
"""The time after which a search returns what it has found, and that it is not complete."""
TURN_SECONDS = 0.2
FIRST_WINDOW = 500
WINDOW_GROWTH = 4
Offsets = Mapping[TopicPartition, int]


class FoundRecords(NamedTuple):
    """The result of a search."""

    records: list[ConsumerRecord]
    """In the order of the search: the oldest or the newest first."""
    looked_at: int
    is_whole: bool
    """True if no record that matches was left out."""


class Matches:
    """The matches of each partition, in the order of the search."""

    def __init__(self, partitions: Offsets, most: int, *, newest_first: bool) -> None:
        self._most = most
        self._newest_first = newest_first
        self._by_partition: dict[TopicPartition, list[ConsumerRecord]] = {tp: [] for tp in partitions}
        self._merged: list[ConsumerRecord] | None = []

    def add(self, tp: TopicPartition, records: list[ConsumerRecord]) -> None:
        """Add matches that come after those that are known of this partition."""
        self._by_partition[tp] += records
        self._merged = None if records else self._merged

    def has_enough(self, tp: TopicPartition, timestamp: int | None) -> bool:
        """Return true if nothing behind `timestamp` in a partition can belong to the result."""
        if len(self._by_partition[tp]) >= self._most:
            return True
        merged = self.merged()
        if timestamp is None or len(merged) < self._most:
            return False
        last = merged[self._most - 1].timestamp
        return timestamp < last if self._newest_first else timestamp > last

    def merged(self) -> list[ConsumerRecord]:
        """Return the first `most` of all partitions."""
        if self._merged is None:
            self._merged = self._merge()
        return self._merged

    def _merge(self) -> list[ConsumerRecord]:
        heads = {tp: 0 for tp, records in self._by_partition.items() if records}
        merged: list[ConsumerRecord] = []
        while heads and len(merged) < self._most:
            choose = max if self._newest_first else min
            tp = choose(heads, key=lambda each: (self._by_partition[each][heads[each]].timestamp, each))
            merged.append(self._by_partition[tp][heads[tp]])
            heads[tp] += 1
            if heads[tp] == len(self._by_partition[tp]):
                del heads[tp]
        return merged

    @property
    def count(self) -> int:
        return sum(map(len, self._by_partition.values()))


def find_oldest(
    consumer: Consumer,
    start_offsets: Offsets,
    end: Offsets,
    wanted: RecordCondition,
    most: int,
    seconds: float = SEARCH_SECONDS,
) -> FoundRecords:
    """Return the oldest records from `start_offsets` on that match."""
    matches, reader = Matches(start_offsets, most, newest_first=False), RecordRangeReader(consumer, wanted, seconds)
    left = set(reader.ranges(start_offsets, end))

    def collect(tp: TopicPartition, found: list[ConsumerRecord], looked_at: list[ConsumerRecord]) -> bool:
        matches.add(tp, found)
        return matches.has_enough(tp, looked_at[-1].timestamp)

    left -= reader.read(start_offsets, end, collect)
    merged = matches.merged()
    return FoundRecords(merged, reader.looked_at, not left and matches.count == len(merged))


def find_newest(
    consumer: Consumer,
    first: Offsets,
    end: Offsets,
    wanted: RecordCondition,
    most: int,
    seconds: float = SEARCH_SECONDS,
) -> FoundRecords:
    """Return the newest records that match, the newest first."""
    matches, reader = Matches(first, most, newest_first=True), RecordRangeReader(consumer, wanted, seconds)
    low, oldest = dict(end), dict[TopicPartition, int]()
    window, is_late = max(most, FIRST_WINDOW), False
    while not is_late:
        open_ones = [tp for tp in first if low[tp] > first[tp] and not matches.has_enough(tp, oldest.get(tp))]
        if not open_ones:
            break
        start_offsets = {tp: max(first[tp], low[tp] - window) for tp in open_ones}
        stop = {tp: low[tp] for tp in open_ones}
        found: dict[TopicPartition, list[ConsumerRecord]] = {tp: [] for tp in open_ones}

        def collect(
            tp: TopicPartition,
            records: list[ConsumerRecord],
            looked_at: list[ConsumerRecord],
            found: dict[TopicPartition, list[ConsumerRecord]] = found,
        ) -> bool:
            found[tp] += records
            oldest[tp] = min(looked_at[0].timestamp, oldest.get(tp, looked_at[0].timestamp))
            return False

        done = reader.read(start_offsets, stop, collect)
        is_late = len(done) < len(open_ones)
        for tp in open_ones:
            matches.add(tp, found[tp][::-1])
            low[tp] = start_offsets[tp]
        window *= WINDOW_GROWTH
    merged = matches.merged()
    is_whole = not is_late and all(low[tp] <= first[tp] for tp in first) and matches.count == len(merged)
    return FoundRecords(merged, reader.looked_at, is_whole)


class RecordRangeReader:
    """Reads ranges of offsets of several partitions, within one span of time."""

    def __init__(self, consumer: Consumer, wanted: RecordCondition, seconds: float) -> None:
        self._consumer = consumer
        self._wanted = wanted
        self._deadline = time.monotonic() + seconds
        self.looked_at = 0

    def ranges(self, start_offsets: Offsets, end: Offsets) -> list[TopicPartition]:
        """Return the partitions that have anything between `start_offsets` and `end`."""
        return [tp for tp in start_offsets if start_offsets[tp] < end[tp]]

    def read(
        self,
        start_offsets: Offsets,
        end: Offsets,
        take: Callable[[TopicPartition, list[ConsumerRecord], list[ConsumerRecord]], bool],
    ) -> set[TopicPartition]:
        """Read each range and return the partitions that were read to the end.

        `take` receives the matches of one poll in a partition, and all records of that poll. It returns True if the rest of the partition
        is not needed.
        """
        left = dict.fromkeys(self.ranges(start_offsets, end))
        done = set(start_offsets) - set(left)
        self._consumer.assign(left)
        self._consumer.resume(*left)  # an earlier range may have ended with a pause
        for tp in left:
            self._consumer.seek(tp, start_offsets[tp])
        while left and time.monotonic() < self._deadline:
            polled: dict[TopicPartition, list[ConsumerRecord]] = {}
            for record in self._consumer.poll(TURN_SECONDS):
                tp = TopicPartition(record.topic, record.partition)
                if tp in left and record.offset < end[tp]:
                    polled.setdefault(tp, []).append(record)
            over = set()
            for tp, records in polled.items():
                self.looked_at += len(records)
                matching = [each for each in records if self._wanted.has(each.key, each.value)]
                if take(tp, matching, records):
                    over.add(tp)
            read = {tp for tp in left if self._consumer.position(tp) >= end[tp]}
            done |= read
            for tp in read | over:
                self._consumer.pause(tp)
                del left[tp]
        return done
