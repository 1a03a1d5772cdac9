"""A fetch session: the partitions that a consumer or follower reads, remembered so that requests and responses name only changes (KIP-227).

    request: changes ──► partitions ──► news ──► response: changes
                                         ▲
                         appends, deletions, other events of a partition

Only partitions with news are read, so that the cost of a fetch depends on what is new and not on the number of
partitions. Pure: there are no logs and no clock here.

A follower reports its position in each fetch, including partitions that it does not name. For partitions without news
this is inferred when there is news: until the session's last fetch the follower had all of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Protocol
from uuid import UUID

from ottla.broker.replica_manager.waiting_fetch import WaitingFetch
from ottla.model import INT32_MAX
from ottla.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

INITIAL_EPOCH = 0
"""The epoch of a request that creates a session."""
FINAL_EPOCH = -1
"""The epoch of a request without a session. It ends the session that it names."""
NOBODY = -1
"""The broker id before a follower has fetched."""
Key = tuple[str | UUID, int]
"""A partition as a request names it: its topic's name up to version 12, the topic's id after, and its index."""


class ReportedState(Protocol):
    """The state of a partition in a response, as in `PartitionData`."""

    @property
    def error_code(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def diverging_epoch(self) -> object: ...
    @property
    def preferred_read_replica(self) -> int: ...
    @property
    def records(self) -> object: ...


class WatchedPartition(Protocol):
    """An object that notifies its watchers of events."""

    watchers: dict[FetchedPartition, None]

    def record_fetch(self, follower: int, moment: float) -> None:
        """Record a fetch, at that moment, of a follower that had everything and did not name the partition."""
        ...


class FetchedPartition:
    """A partition in a session: the client's position, and the state in the last response."""

    __slots__ = (
        "high_watermark",
        "lacks",
        "last_stable_offset",
        "log_start_offset",
        "name",
        "session",
        "topic_id",
        "wanted",
        "watched",
    )

    def __init__(self, name: str | None, topic_id: UUID, wanted: FetchPartition) -> None:
        self.name = name
        """The topic's name; None until the id is known."""
        self.topic_id = topic_id
        self.wanted = wanted
        self.session: FetchSession | None = None
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
        self.watched: WatchedPartition | None = None
        self.lacks = False
        """True if the leader did not know at its last read that the follower has everything: the follower has to fetch
        again.
        """

    def watch(self, source: WatchedPartition) -> None:
        """Watch `source`, and nothing else. Does nothing without a session."""
        if self.watched is not source and self.session is not None:
            self.unwatch()
            self.watched = source
            source.watchers[self] = None

    def unwatch(self) -> None:
        if self.watched is not None:
            self.watched.watchers.pop(self, None)
            self.watched = None

    def differs(self, data: ReportedState) -> bool:
        """Return True if `data` has anything that the client does not know."""
        return bool(
            data.error_code
            or data.records
            or data.high_watermark != self.high_watermark
            or data.last_stable_offset != self.last_stable_offset
            or data.log_start_offset != self.log_start_offset
            or data.diverging_epoch is not None
            or data.preferred_read_replica >= 0
        )

    def record_response(self, data: ReportedState) -> None:
        """Remember the state that the client knows. After an error all of it is sent again."""
        self.high_watermark = -1 if data.error_code else data.high_watermark
        self.last_stable_offset = data.last_stable_offset
        self.log_start_offset = data.log_start_offset


class FetchSession:
    """The partitions that one client reads."""

    def __init__(self, session_id: int, *, uses_ids: bool, privileged: bool, now: float) -> None:
        self.follower = NOBODY
        """The follower's broker id; -1 for a consumer."""
        self.follower_epoch = NOBODY
        self.asked_at = now
        """The time of the follower's last fetch, by the monotonic clock."""
        self.session_id = session_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        """The epoch that the next request must have."""
        self.uses_ids = uses_ids
        """True if topics are named by ids. It cannot change."""
        self.privileged = privileged
        """True for a follower's session, which has priority over consumers'."""
        self.created = self.last_used = now
        self.partitions: dict[Key, FetchedPartition] = {}
        self.news: dict[FetchedPartition, None] = {}
        """The partitions to read, the longest wait first: a partition that returned records moves to the end."""
        self.waiting: dict[WaitingFetch, None] = {}
        """Fetches of this session that wait."""

    def __str__(self) -> str:
        shown = [
            f"{each.name or each.topic_id}-{each.wanted.partition}" for each in islice(self.partitions.values(), 3)
        ]
        rest = len(self.partitions) - len(shown)
        return f"session {self.session_id}: {', '.join(shown)}" + (f" and {rest} more" if rest else "")

    def adopt(self, partitions: Iterable[tuple[Key, FetchedPartition]]) -> None:
        for key, partition in partitions:
            partition.session = self
            self.partitions[key] = partition

    def update(self, topics: Iterable[FetchTopic], forgotten: Iterable[ForgottenTopic]) -> None:
        """Apply a request's changes: added, changed and removed partitions."""
        for key, topic, wanted in list_requested(topics, self.uses_ids):
            known = self.partitions.get(key)
            if known is None:
                known = make_partition(topic, wanted, self.uses_ids)
                self.adopt([(key, known)])
            known.wanted = wanted
            self.mark_changed(known)
        for gone in forgotten:
            name: str | UUID = gone.topic_id if self.uses_ids else gone.topic
            for index in gone.partitions:
                self._remove((name, index))

    def mark_changed(self, partition: FetchedPartition) -> None:
        """Add a partition to the news. A follower had all of a partition without news until its last fetch."""
        self._recheck(partition)
        self.news[partition] = None

    def _recheck(self, partition: FetchedPartition) -> None:
        if self.privileged and partition.watched is not None and partition not in self.news:
            partition.watched.record_fetch(self.follower, self.asked_at)

    def handle_request(self, follower: int, follower_epoch: int, now: float) -> None:
        """Record a fetch of a follower.

        If the follower has restarted, it has to report its position in each partition again.
        """
        if (follower, follower_epoch) != (self.follower, self.follower_epoch):
            for partition in self.partitions.values():
                self.mark_changed(partition)
        self.follower, self.follower_epoch, self.asked_at = follower, follower_epoch, now

    def handle_response(self, found: Iterable[tuple[FetchedPartition, ReportedState]]) -> None:
        """Record the response. A partition without an error that is read to its end has no more news."""
        for partition, data in found:
            partition.record_response(data)
            if data.error_code or data.records:
                # Other partitions are first in the next response.
                self.news.pop(partition, None)
                self.news[partition] = None
            elif partition.wanted.fetch_offset == data.high_watermark and not partition.lacks:
                self.news.pop(partition, None)

    def advance(self) -> None:
        """Advance the epoch by one request."""
        self.epoch = next_epoch(self.epoch)

    def end(self) -> None:
        """Stop watching all partitions, also for a fetch that still waits."""
        for partition in self.partitions.values():
            self._recheck(partition)
            partition.unwatch()
            partition.session = None

    def check(self) -> None:
        assert self.news.keys() <= set(self.partitions.values())
        assert all(partition.session is self for partition in self.partitions.values())
        assert 0 < self.epoch <= INT32_MAX

    def _remove(self, key: Key) -> None:
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self._recheck(partition)
            partition.unwatch()
            partition.session = None
            self.news.pop(partition, None)


def next_epoch(epoch: int) -> int:
    """Return the next epoch. It is never 0, the epoch that creates a session."""
    return 1 if epoch == INT32_MAX else epoch + 1


def list_requested(topics: Iterable[FetchTopic], uses_ids: bool) -> Iterator[tuple[Key, FetchTopic, FetchPartition]]:
    """Yield the partitions of a request, with their keys and topics."""
    for topic in topics:
        name: Any = topic.topic_id if uses_ids else topic.topic
        for wanted in topic.partitions:
            yield (name, wanted.partition), topic, wanted


def make_partition(topic: FetchTopic, wanted: FetchPartition, uses_ids: bool) -> FetchedPartition:
    """Return a partition without any state known to the client."""
    return FetchedPartition(None if uses_ids else topic.topic, topic.topic_id, wanted)
