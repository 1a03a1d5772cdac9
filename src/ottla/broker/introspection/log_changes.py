"""Changes of logs between two looks: their segments, and their ISR.

Logs send no events, which would cost time in each append: a new segment is seen at the next look, as long as it exists.
After a long pause no changes are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ottla.broker.replica_manager.log_events import InSyncChanged, SegmentRolled, SegmentsDeleted
from ottla.broker.replica_manager.partition import Partition
from ottla.model import TopicPartition
from ottla.storage.segments.segment import Segment

TOO_LONG_SECONDS = 2.0
"""The pause after which no changes are reported."""
Event = SegmentRolled | SegmentsDeleted | InSyncChanged


class LogState(NamedTuple):
    """A log as it was seen."""

    bases: tuple[int, ...]
    """The base offset of each segment."""
    in_sync: tuple[int, ...] | None
    """None where another broker leads."""


class LogChanges:
    """Remembers the state of each log at the last look."""

    def __init__(self) -> None:
        self._seen: dict[TopicPartition, LogState] = {}
        self._looked_at = float("-inf")

    def find_changes(self, partitions: Iterable[Partition], now: float) -> Iterator[Event]:
        """Yield the changes since the last call. The state is recorded even if the iterator is not consumed."""
        before, self._seen = self._seen, {}
        is_news, self._looked_at = now - self._looked_at < TOO_LONG_SECONDS, now
        for partition in partitions:
            place = partition.topic_partition
            self._seen[place] = read_state(partition, before.get(place))
        changed = [(place, before[place], look) for place, look in self._seen.items() if place in before]
        return (event for each in changed if is_news for event in changes_between(*each))


def read_state(partition: Partition, before: LogState | None) -> LogState:
    """Return the state of a log. Segments that are unchanged are shared with the state before."""
    segments = partition.log.segments
    leadership = partition.leadership
    in_sync = None if leadership is None else tuple(sorted(leadership.machine.assignment.in_sync))
    if before is not None and is_same(before.bases, segments):
        return LogState(before.bases, in_sync)
    return LogState(tuple(each.base_offset for each in segments), in_sync)


def is_same(bases: tuple[int, ...], segments: Sequence[Segment]) -> bool:
    """Return True if the first segment, the last segment and the number of segments are unchanged."""
    if not segments or len(bases) != len(segments):
        return False
    return (bases[0], bases[-1]) == (segments[0].base_offset, segments[-1].base_offset)


def changes_between(place: TopicPartition, before: LogState, now: LogState) -> Iterator[Event]:
    """Yield the changes between two looks at one log. Nothing is reported of a log that was emptied."""
    if before.bases and now.bases and now.bases[-1] >= before.bases[-1]:
        gone = sum(base < now.bases[0] for base in before.bases)
        yield from (SegmentRolled(place, base) for base in now.bases if base > before.bases[-1])
        if gone:
            yield SegmentsDeleted(place, gone, now.bases[0])
    if before.in_sync is not None and now.in_sync is not None and before.in_sync != now.in_sync:
        yield InSyncChanged(place, before.in_sync, now.in_sync)
