"""What a consumer tells of itself while it works: `Consumer.trace()` hands these out, each with its time.

Values only; the text of each is a line for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.model import TopicPartition
from ottla.trace import maker


class RebalanceStarted(NamedTuple):
    """A member takes part in a rebalance: JoinGroup leaves, or the coordinator has shared out anew (KIP-848)."""

    reason: str
    """What set it off as far as this member knows; nothing at its first join."""

    def __str__(self) -> str:
        return f"rebalance started: {self.reason or 'this member is new'}"


class Joined(NamedTuple):
    """All members are there, and a generation begins; or this member was let in (KIP-848), in a generation that is its epoch."""

    generation: int
    member_id: str
    protocol: str
    leads: bool
    """Whether this member shares the partitions out."""

    def __str__(self) -> str:
        leads = ", leading" if self.leads else ""
        return f"joined generation {self.generation} as {self.member_id}{leads} ({self.protocol})"


class JoinRefused(NamedTuple):
    """JoinGroup or SyncGroup came to nothing; the member tries again, or tells its user."""

    error: str
    """Kafka's name, or why there was no answer."""

    def __str__(self) -> str:
        return f"not joined: {self.error}"


class Synced(NamedTuple):
    """The assignment of the leader, or of the coordinator, is here."""

    generation: int

    def __str__(self) -> str:
        return f"synced generation {self.generation}"


class Assigned(NamedTuple):
    """What this member has after a rebalance."""

    partitions: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    """Those of them that it did not have before."""

    def __str__(self) -> str:
        new = "all" if self.added == self.partitions else listed(self.added)
        return f"assigned {listed(self.partitions)}" + (f", new: {new}" if self.partitions else "")


class Revoked(NamedTuple):
    """Given up in good order."""

    partitions: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"revoked {listed(self.partitions)}"


class Lost(NamedTuple):
    """Taken away: others may have them already."""

    partitions: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"lost {listed(self.partitions)}"


class Left(NamedTuple):
    """The coordinator is told that this member goes."""

    reason: str

    def __str__(self) -> str:
        return f"left the group: {self.reason}"


class HeartbeatSent(NamedTuple):
    """A heartbeat leaves."""

    generation: int

    def __str__(self) -> str:
        return f"heartbeat sent in generation {self.generation}"


class HeartbeatAnswered(NamedTuple):
    """Its answer is here, or will not come."""

    error: str
    """Kafka's name, such as REBALANCE_IN_PROGRESS, or why there is no answer; nothing when all is well."""

    def __str__(self) -> str:
        return f"heartbeat answered: {self.error or 'all is well'}"


class Polled(NamedTuple):
    """The user calls `poll`."""

    gap_ms: float
    """Since the user was last in `poll`; the first time 0."""

    def __str__(self) -> str:
        return f"poll after {self.gap_ms:.0f} ms"


class FetchSent(NamedTuple):
    """A broker is asked for records."""

    node_id: int
    offsets: Mapping[TopicPartition, int]
    """Where to read on in each partition."""

    def __str__(self) -> str:
        offsets = ", ".join(f"{tp} at {offset}" for tp, offset in self.offsets.items())
        return f"fetch sent to node {self.node_id}: {offsets}"


class FetchCompleted(NamedTuple):
    """The broker has answered, or will not."""

    node_id: int
    size_bytes: int
    """Of records in the answer."""
    error: str
    """Why there is nothing; nothing when all is well."""

    def __str__(self) -> str:
        return f"fetch from node {self.node_id} completed: {self.error or f'{self.size_bytes} bytes'}"


class Buffered(NamedTuple):
    """Records of one partition wait to be handed out."""

    partition: TopicPartition
    offset: int
    size_bytes: int

    def __str__(self) -> str:
        return f"buffered {self.size_bytes} bytes of {self.partition} from {self.offset}"


class HandedOut(NamedTuple):
    """Records of one partition go to the user."""

    partition: TopicPartition
    offset: int
    """Of the first, or below it where offsets have gaps."""
    records: int

    def __str__(self) -> str:
        return f"handed out {self.records} of {self.partition} from {self.offset}"


def fetch_sent(node_id: int, *places: Any) -> FetchSent:
    """Of `places` each topic is followed by a partition of it and the offset."""
    topics, partitions, offsets = places[::3], places[1::3], places[2::3]
    return FetchSent(node_id, dict(zip(map(TopicPartition, topics, partitions), offsets, strict=True)))


def buffered(topic: str, partition: int, offset: int, size_bytes: int) -> Buffered:
    return Buffered(TopicPartition(topic, partition), offset, size_bytes)


def handed_out(topic: str, partition: int, offset: int, records: int) -> HandedOut:
    return HandedOut(TopicPartition(topic, partition), offset, records)


POLLED, COMPLETED = maker(Polled), maker(FetchCompleted)
SENT, BUFFERED, HANDED_OUT = maker(FetchSent, fetch_sent), maker(Buffered, buffered), maker(HandedOut, handed_out)
"""By which those are told that are frequent."""


class Committed(NamedTuple):
    """The coordinator has taken offsets, or has not."""

    offsets: Mapping[TopicPartition, int]
    error: str
    """Why not; nothing when all is well."""

    def __str__(self) -> str:
        offsets = ", ".join(f"{tp} at {offset}" for tp, offset in self.offsets.items())
        return f"commit of {offsets} failed: {self.error}" if self.error else f"committed {offsets}"


REBALANCE = (RebalanceStarted, Joined, JoinRefused, Synced, Assigned, Revoked, Lost, Left)
"""Those of the group's time line."""


def listed(partitions: tuple[TopicPartition, ...]) -> str:
    """Partitions for people, each topic named once."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return "; ".join(f"{topic} {','.join(map(str, sorted(numbers)))}" for topic, numbers in topics.items()) or "nothing"
