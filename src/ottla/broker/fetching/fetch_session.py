"""A fetch session: what one consumer reads, remembered, so that requests and answers name only what changed (KIP-227).

    request: changed ──► partitions ──► news ──► answer: changed
                                         ▲
                         appends, deletions, whatever else happens to a partition

Only partitions with news are looked at, so a fetch of a session costs what is new and not what is read. Pure: knows no
logs and no clock.

A follower tells its leader by each fetch how far it has come, with partitions that it does not name, too. Of those without news
that is taken for said, and reckoned when there is news: until the session's last fetch the follower had all that there was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from ottla.model import INT32_MAX
from ottla.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

if TYPE_CHECKING:
    from ottla.broker.fetching.waiting import WaitingFetch

INITIAL_EPOCH = 0
"""Asks for a session."""
FINAL_EPOCH = -1
"""Wants none, and ends the one that is named."""
NOBODY = -1
"""A broker's number before a follower has asked."""
Key = tuple[str | UUID, int]
"""A partition as a request names it: its topic's name up to version 12, the topic's id after, and its index."""


class Told(Protocol):
    """What an answer says of a partition, as `PartitionData` does."""

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


class Watched(Protocol):
    """What tells those who watch it that something happened."""

    watchers: dict[FetchedPartition, None]

    def heard(self, follower: int, moment: float) -> None:
        """A follower that had everything asked at that moment, and did not name it."""
        ...


class FetchedPartition:
    """A partition as a client reads it: what it wants, and what it was told last."""

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
        self.watched: Watched | None = None
        self.lacks = False
        """Whether the leader did not know, when it looked last, that the follower has everything: it has to ask again."""

    def watch(self, source: Watched) -> None:
        """Hear of what happens to `source`, and of nothing else any more; without a session of nothing."""
        if self.watched is not source and self.session is not None:
            self.unwatch()
            self.watched = source
            source.watchers[self] = None

    def unwatch(self) -> None:
        if self.watched is not None:
            self.watched.watchers.pop(self, None)
            self.watched = None

    def differs(self, data: Told) -> bool:
        """Whether there is something in `data` that the client does not know."""
        return bool(
            data.error_code
            or data.records
            or data.high_watermark != self.high_watermark
            or data.last_stable_offset != self.last_stable_offset
            or data.log_start_offset != self.log_start_offset
            or data.diverging_epoch is not None
            or data.preferred_read_replica >= 0
        )

    def tell(self, data: Told) -> None:
        """Remember what the client knows now; after an error everything is told again."""
        self.high_watermark = -1 if data.error_code else data.high_watermark
        self.last_stable_offset = data.last_stable_offset
        self.log_start_offset = data.log_start_offset


class FetchSession:
    """The partitions that one client reads."""

    def __init__(self, session_id: int, *, uses_ids: bool, privileged: bool, now: float) -> None:
        self.follower = NOBODY
        """Which broker reads for its copies."""
        self.follower_epoch = NOBODY
        self.asked_at = now
        """When a follower asked last; a reading of the monotonic clock."""
        self.session_id = session_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        """What the next request has to say."""
        self.uses_ids = uses_ids
        """Whether topics are named by ids; that cannot change."""
        self.privileged = privileged
        """Whether a follower reads, which goes before consumers."""
        self.created = self.last_used = now
        self.partitions: dict[Key, FetchedPartition] = {}
        self.news: dict[FetchedPartition, None] = {}
        """What is to be looked at, longest waiting first: who got records goes to the end."""
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
        """Read what a request adds, changes and leaves out from now on."""
        for key, topic, wanted in wanted_of(topics, self.uses_ids):
            known = self.partitions.get(key)
            if known is None:
                known = fetched(topic, wanted, self.uses_ids)
                self.adopt([(key, known)])
            known.wanted = wanted
            self.note(known)
        for gone in forgotten:
            name: str | UUID = gone.topic_id if self.uses_ids else gone.topic
            for index in gone.partitions:
                self._remove((name, index))

    def note(self, partition: FetchedPartition) -> None:
        """It has news. Of what had none a follower has told by its fetches until now that it has everything."""
        self._reckon(partition)
        self.news[partition] = None

    def _reckon(self, partition: FetchedPartition) -> None:
        if self.privileged and partition.watched is not None and partition not in self.news:
            partition.watched.heard(self.follower, self.asked_at)

    def asked(self, follower: int, follower_epoch: int, now: float) -> None:
        """A follower fetches; in another life it has to say anew of each partition how far it has come."""
        if (follower, follower_epoch) != (self.follower, self.follower_epoch):
            for partition in self.partitions.values():
                self.note(partition)
        self.follower, self.follower_epoch, self.asked_at = follower, follower_epoch, now

    def answered(self, found: Iterable[tuple[FetchedPartition, Told]]) -> None:
        """Note what the client is told; who is at the end of its log, and well, has no news any more."""
        for partition, data in found:
            partition.tell(data)
            if data.error_code or data.records:
                # Others come first next time.
                self.news.pop(partition, None)
                self.news[partition] = None
            elif partition.wanted.fetch_offset == data.high_watermark and not partition.lacks:
                self.news.pop(partition, None)

    def advance(self) -> None:
        """Let the next request be the next."""
        self.epoch = next_epoch(self.epoch)

    def end(self) -> None:
        """Watch nothing any more, not even for a fetch that still waits."""
        for partition in self.partitions.values():
            self._reckon(partition)
            partition.unwatch()
            partition.session = None

    def check(self) -> None:
        assert self.news.keys() <= set(self.partitions.values())
        assert all(partition.session is self for partition in self.partitions.values())
        assert 0 < self.epoch <= INT32_MAX

    def _remove(self, key: Key) -> None:
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self._reckon(partition)
            partition.unwatch()
            partition.session = None
            self.news.pop(partition, None)


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`: 0 is for new sessions alone."""
    return 1 if epoch == INT32_MAX else epoch + 1


def wanted_of(topics: Iterable[FetchTopic], uses_ids: bool) -> Iterator[tuple[Key, FetchTopic, FetchPartition]]:
    """The partitions in a request."""
    for topic in topics:
        name: Any = topic.topic_id if uses_ids else topic.topic
        for wanted in topic.partitions:
            yield (name, wanted.partition), topic, wanted


def fetched(topic: FetchTopic, wanted: FetchPartition, uses_ids: bool) -> FetchedPartition:
    """A partition that nobody was told anything of."""
    return FetchedPartition(None if uses_ids else topic.topic, topic.topic_id, wanted)
