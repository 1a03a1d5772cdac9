"""What a coordinator of groups can be told."""

from __future__ import annotations

from msgspec import Struct


class GroupConfig(Struct, frozen=True):
    """The broker's settings of the same names, `group.…` and `offsets.…`, in seconds where they are spans."""

    initial_rebalance_delay: float = 0.0
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 0x7FFF_FFFF
    offsets_retention_ms: int = 7 * 24 * 60 * 60_000
    new_member_join_timeout: float = 300.0
    """How long a member that nobody can reach yet may wait for its first join to end; Kafka's constant."""
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_first_epoch: int = 0
    """The epoch of a new group before its first subscription, which begins the next one; Kafka's coordinator begins with 1."""
    consumer_max_size: int = 0x7FFF_FFFF
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_migration_policy: str = "bidirectional"
