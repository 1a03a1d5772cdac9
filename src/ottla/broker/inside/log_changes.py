"""What has changed of logs between two looks at them: their segments, and which copies are in sync.

Nobody is told by the logs themselves, which would cost each append something: a segment that has begun is there to be
seen until it is deleted. Whoever has not looked for long begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ottla.broker.partitions.log_events import InSyncChanged, SegmentRolled, SegmentsDeleted
from ottla.broker.partitions.partition import Partition
from ottla.model import TopicPartition
from ottla.storage.segments.segment import Segment

TOO_LONG_SECONDS = 2.0
"""After a pause as long as that what has changed meanwhile is no news."""
Event = SegmentRolled | SegmentsDeleted | InSyncChanged


class Look(NamedTuple):
    """A log as it was seen."""

    bases: tuple[int, ...]
    """The base offset of each segment."""
    in_sync: tuple[int, ...] | None
    """None where another broker leads."""


class LogChanges:
    """Remembers how each log was at the last look."""

    def __init__(self) -> None:
        self._seen: dict[TopicPartition, Look] = {}
        self._looked_at = float("-inf")

    def look(self, partitions: Iterable[Partition], now: float) -> Iterator[Event]:
        """What has changed since the last look; all is taken in even if nobody reads on."""
        before, self._seen = self._seen, {}
        is_news, self._looked_at = now - self._looked_at < TOO_LONG_SECONDS, now
        for partition in partitions:
            place = partition.topic_partition
            self._seen[place] = look_at(partition, before.get(place))
        changed = [(place, before[place], look) for place, look in self._seen.items() if place in before]
        return (event for each in changed if is_news for event in changes_between(*each))


def look_at(partition: Partition, before: Look | None) -> Look:
    """How a log is; where its segments are as before, they are not written down again."""
    segments = partition.log.segments
    leadership = partition.leadership
    in_sync = None if leadership is None else tuple(sorted(leadership.machine.assignment.in_sync))
    if before is not None and is_same(before.bases, segments):
        return Look(before.bases, in_sync)
    return Look(tuple(each.base_offset for each in segments), in_sync)


def is_same(bases: tuple[int, ...], segments: Sequence[Segment]) -> bool:
    """Whether the first, the last and the number of segments are as they were."""
    if not segments or len(bases) != len(segments):
        return False
    return (bases[0], bases[-1]) == (segments[0].base_offset, segments[-1].base_offset)


def changes_between(place: TopicPartition, before: Look, now: Look) -> Iterator[Event]:
    """What tells two looks at one log apart; a log that was emptied begins anew and has nothing to tell."""
    if before.bases and now.bases and now.bases[-1] >= before.bases[-1]:
        gone = sum(base < now.bases[0] for base in before.bases)
        yield from (SegmentRolled(place, base) for base in now.bases if base > before.bases[-1])
        if gone:
            yield SegmentsDeleted(place, gone, now.bases[0])
    if before.in_sync is not None and now.in_sync is not None and before.in_sync != now.in_sync:
        yield InSyncChanged(place, before.in_sync, now.in_sync)
