"""Views of the parts of a broker at one moment: values only. Times are in milliseconds; None if there is none."""

from __future__ import annotations

from typing import NamedTuple


class WaitView(NamedTuple):
    """A request in the purgatory."""

    api: str
    client_id: str
    correlation_id: int
    """The correlation id of the request; -1 for a wait of a coordinator."""
    places: tuple[str, ...]
    """The partitions it waits for, or a fetch session."""
    missing_bytes: int
    since_ms: float | None
    """The time for which the client has waited; None for a wait of a coordinator."""
    left_ms: float


class MemberView(NamedTuple):
    """A member of a group, or one that is about to join."""

    member_id: str
    client_id: str
    client_host: str
    waits_for: str
    """The reason why it waits, or is waited for; empty if it does not wait."""
    partitions: int | None
    """The number of assigned partitions; None if only the members know it."""
    session_ms: float | None
    """The time until the session expires without a heartbeat."""


class GroupView(NamedTuple):
    """A group as its coordinator has it."""

    group: str
    kind: str
    state: str
    epoch: int
    """The epoch, or the generation of a classic group."""
    protocol: str
    leader: str
    cause: str
    """The cause of the last rebalance; empty if there was none since the broker started."""
    left_ms: float | None
    """The time until a rebalance continues without the missing members."""
    members: tuple[MemberView, ...]
    more_members: int


class SegmentView(NamedTuple):
    base_offset: int
    size_bytes: int
    active: bool
    offset_entries: int | None
    """The number of entries of the offset index; None if it is not in memory."""
    time_entries: int | None


class ReplicaView(NamedTuple):
    """A replica on another broker, as the leader knows it."""

    broker: int
    log_end: int
    """The replica's log end; -1 if it has not fetched yet."""
    in_sync: bool
    lag_ms: float


class PartitionLogView(NamedTuple):
    partition: str
    leads: bool
    leader_epoch: int
    log_start: int
    high_watermark: int
    last_stable: int
    log_end: int
    size_bytes: int
    segments: tuple[SegmentView, ...]
    """The last segments of the log."""
    more_segments: int
    replicas: tuple[ReplicaView, ...]


class DirtyView(NamedTuple):
    """A compacted log, with its dirty ratio at the last check."""

    partition: str
    dirty_ratio: float
    least_ratio: float
    """The dirty ratio from which the log is compacted."""
    due: bool


class CleanerView(NamedTuple):
    at: str | None
    """The partition it works on."""
    since_ms: float | None
    logs: tuple[DirtyView, ...]


class RequestLatencyView(NamedTuple):
    """The latencies of one API in milliseconds since the broker started, by the bounds of a histogram."""

    api: str
    answers: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class ClientView(NamedTuple):
    """The number of requests of one client since the broker started."""

    client_id: str
    requests: int


class BrokerSnapshot(NamedTuple):
    """A snapshot of the broker; long lists are cut."""

    broker: int
    waiting: tuple[WaitView, ...]
    more_waiting: int
    groups: tuple[GroupView, ...]
    more_groups: int
    partitions: tuple[PartitionLogView, ...]
    more_partitions: int
    cleaner: CleanerView
    requests: tuple[RequestLatencyView, ...]
    clients: tuple[ClientView, ...]
    connections: int
