"""Events of a consumer, as `Consumer.trace()` returns them, each with its time.

Values only; the text of each is a log line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.model import TopicPartition
from ottla.trace import maker


class RebalanceStarted(NamedTuple):
    """A rebalance started for this member: JoinGroup is sent, or the coordinator has changed the assignment (KIP-848)."""

    reason: str
    """The cause, if this member knows it; "" at its first join."""

    def __str__(self) -> str:
        return f"rebalance started: {self.reason or 'this member is new'}"


class Joined(NamedTuple):
    """The member has joined a generation; with KIP-848 the generation is the member epoch."""

    generation: int
    member_id: str
    protocol: str
    leads: bool
    """True if this member assigns the partitions."""

    def __str__(self) -> str:
        leads = ", leading" if self.leads else ""
        return f"joined generation {self.generation} as {self.member_id}{leads} ({self.protocol})"


class JoinRefused(NamedTuple):
    """JoinGroup or SyncGroup failed. The member retries, or the error is raised to the user."""

    error: str
    """Kafka's name of the error, or the reason for the missing response."""

    def __str__(self) -> str:
        return f"not joined: {self.error}"


class Synced(NamedTuple):
    """The member has received its assignment."""

    generation: int

    def __str__(self) -> str:
        return f"synced generation {self.generation}"


class Assigned(NamedTuple):
    """The assignment after a rebalance."""

    partitions: tuple[TopicPartition, ...]
    added: tuple[TopicPartition, ...]
    """The partitions that were not assigned before."""

    def __str__(self) -> str:
        new = "all" if self.added == self.partitions else format_partitions(self.added)
        return f"assigned {format_partitions(self.partitions)}" + (f", new: {new}" if self.partitions else "")


class Revoked(NamedTuple):
    """Partitions that were revoked."""

    partitions: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"revoked {format_partitions(self.partitions)}"


class Lost(NamedTuple):
    """Partitions that were lost; other members may own them already."""

    partitions: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return f"lost {format_partitions(self.partitions)}"


class Left(NamedTuple):
    """The member leaves the group."""

    reason: str

    def __str__(self) -> str:
        return f"left the group: {self.reason}"


class HeartbeatSent(NamedTuple):
    """A heartbeat is sent."""

    generation: int

    def __str__(self) -> str:
        return f"heartbeat sent in generation {self.generation}"


class HeartbeatAnswered(NamedTuple):
    """The response to a heartbeat, or its failure."""

    error: str
    """Kafka's name of the error, such as REBALANCE_IN_PROGRESS, or the reason for the missing response; "" on success.
    """

    def __str__(self) -> str:
        return f"heartbeat answered: {self.error or 'ok'}"


class Polled(NamedTuple):
    """The user calls `poll`."""

    gap_ms: float
    """Milliseconds since the last `poll`; 0 for the first."""

    def __str__(self) -> str:
        return f"poll after {self.gap_ms:.0f} ms"


class FetchSent(NamedTuple):
    """A fetch request is sent."""

    node_id: int
    offsets: Mapping[TopicPartition, int]
    """The start offset of each partition."""

    def __str__(self) -> str:
        offsets = ", ".join(f"{tp} at {offset}" for tp, offset in self.offsets.items())
        return f"fetch sent to node {self.node_id}: {offsets}"


class FetchCompleted(NamedTuple):
    """A fetch request has a response, or has failed."""

    node_id: int
    size_bytes: int
    """Bytes of records in the response."""
    error: str
    """The error; "" on success."""

    def __str__(self) -> str:
        return f"fetch from node {self.node_id} completed: {self.error or f'{self.size_bytes} bytes'}"


class Buffered(NamedTuple):
    """Fetched records of one partition are buffered."""

    partition: TopicPartition
    offset: int
    size_bytes: int

    def __str__(self) -> str:
        return f"buffered {self.size_bytes} bytes of {self.partition} from {self.offset}"


class HandedOut(NamedTuple):
    """Records of one partition are returned to the user."""

    partition: TopicPartition
    offset: int
    """The position before this return; the first record may have a higher offset if offsets have gaps."""
    records: int

    def __str__(self) -> str:
        return f"returned {self.records} of {self.partition} from {self.offset}"


def fetch_sent(node_id: int, *places: Any) -> FetchSent:
    """Create the event from triples of topic, partition and offset."""
    topics, partitions, offsets = places[::3], places[1::3], places[2::3]
    return FetchSent(node_id, dict(zip(map(TopicPartition, topics, partitions), offsets, strict=True)))


def buffered(topic: str, partition: int, offset: int, size_bytes: int) -> Buffered:
    return Buffered(TopicPartition(topic, partition), offset, size_bytes)


def handed_out(topic: str, partition: int, offset: int, records: int) -> HandedOut:
    return HandedOut(TopicPartition(topic, partition), offset, records)


POLLED, COMPLETED = maker(Polled), maker(FetchCompleted)
SENT, BUFFERED, HANDED_OUT = maker(FetchSent, fetch_sent), maker(Buffered, buffered), maker(HandedOut, handed_out)
"""Constructors of the frequent events."""


class Committed(NamedTuple):
    """The result of a commit."""

    offsets: Mapping[TopicPartition, int]
    error: str
    """The error; "" on success."""

    def __str__(self) -> str:
        offsets = ", ".join(f"{tp} at {offset}" for tp, offset in self.offsets.items())
        return f"commit of {offsets} failed: {self.error}" if self.error else f"committed {offsets}"


REBALANCE = (RebalanceStarted, Joined, JoinRefused, Synced, Assigned, Revoked, Lost, Left)
"""The events shown in the timeline of a group."""


def format_partitions(partitions: tuple[TopicPartition, ...]) -> str:
    """Format partitions with each topic named once."""
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return "; ".join(f"{topic} {','.join(map(str, sorted(numbers)))}" for topic, numbers in topics.items()) or "nothing"
