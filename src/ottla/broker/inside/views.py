"""The parts of a broker as they are at one moment: values only. Spans are in milliseconds, None where there is none."""

from __future__ import annotations

from typing import NamedTuple


class WaitView(NamedTuple):
    """A request in the purgatory."""

    api: str
    client_id: str
    correlation_id: int
    """The client's number of the request; -1 for what a coordinator holds back."""
    places: tuple[str, ...]
    """What it waits for: partitions, or a session of them."""
    missing_bytes: int
    since_ms: float | None
    """For how long its client has been waiting; None for what a coordinator holds back."""
    left_ms: float


class MemberView(NamedTuple):
    """One who is in a group, or is to come."""

    member_id: str
    client_id: str
    client_host: str
    waits_for: str
    """For what, or what it is waited for; empty where all is done."""
    partitions: int | None
    """How many it has; None where only the members know."""
    session_ms: float | None
    """When it is out if nothing is heard of it."""


class GroupView(NamedTuple):
    """A group as its coordinator has it."""

    group: str
    kind: str
    state: str
    epoch: int
    """Or generation."""
    protocol: str
    leader: str
    cause: str
    """Of the last rebalance; empty where there was none since the broker began."""
    left_ms: float | None
    """When a rebalance under way goes on without those who are missing."""
    members: tuple[MemberView, ...]
    more_members: int


class SegmentView(NamedTuple):
    base_offset: int
    size_bytes: int
    active: bool
    offset_entries: int | None
    """None where the index is not in memory."""
    time_entries: int | None


class ReplicaView(NamedTuple):
    """A copy at another broker, as the leader knows it."""

    broker: int
    log_end: int
    """-1 where it has not fetched yet."""
    in_sync: bool
    lag_ms: float


class PartitionView(NamedTuple):
    partition: str
    leads: bool
    leader_epoch: int
    log_start: int
    high_watermark: int
    last_stable: int
    log_end: int
    size_bytes: int
    segments: tuple[SegmentView, ...]
    """The last ones."""
    more_segments: int
    replicas: tuple[ReplicaView, ...]


class DirtyView(NamedTuple):
    """A log that is compacted, when it was last looked at."""

    partition: str
    dirty_ratio: float
    least_ratio: float
    """From which on it is worth the work."""
    due: bool


class CleanerView(NamedTuple):
    at: str | None
    """What it works on."""
    since_ms: float | None
    logs: tuple[DirtyView, ...]


class RequestView(NamedTuple):
    """How long the answers of one API took since the broker began, in milliseconds; bounds of the histogram's buckets."""

    api: str
    answers: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class ClientView(NamedTuple):
    """How many requests came from one client since the broker began."""

    client_id: str
    requests: int


class BrokerSnapshot(NamedTuple):
    """All of it, the longest lists cut."""

    broker: int
    waiting: tuple[WaitView, ...]
    more_waiting: int
    groups: tuple[GroupView, ...]
    more_groups: int
    partitions: tuple[PartitionView, ...]
    more_partitions: int
    cleaner: CleanerView
    requests: tuple[RequestView, ...]
    clients: tuple[ClientView, ...]
    connections: int
