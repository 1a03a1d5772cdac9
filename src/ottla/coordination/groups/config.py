"""The settings of a group coordinator."""

from __future__ import annotations

from msgspec import Struct


class ShareGroupConfig(Struct, frozen=True):
    """The broker's settings `group.share.…` of the same names."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 200


class StreamsGroupConfig(Struct, frozen=True):
    """The broker's settings `group.streams.…` of the same names."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 0x7FFF_FFFF
    num_standby_replicas: int = 0
    initial_rebalance_delay_ms: int = 3_000
    assignment_interval_ms: int = 1_000
    task_offset_interval_ms: int = 60_000
    acceptable_recovery_lag: int = 10_000
    rack_aware_assignment_tags: tuple[str, ...] = ()
    stores_descriptions: bool = False
    """True if descriptions of topologies are requested and stored (`group.streams.topology.description.plugin.class`)."""


class GroupConfig(Struct, frozen=True):
    """The broker's settings `group.…` and `offsets.…` of the same names. Settings without a unit in their name are in seconds."""

    initial_rebalance_delay: float = 0.0
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 0x7FFF_FFFF
    offsets_retention_ms: int = 7 * 24 * 60 * 60_000
    new_member_join_timeout: float = 300.0
    """The timeout of a member's first join, before it can send heartbeats; a constant in Kafka."""
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_first_epoch: int = 0
    """The epoch of a new group before its first subscription, which starts the next epoch; 1 in Kafka's coordinator."""
    consumer_max_size: int = 0x7FFF_FFFF
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_migration_policy: str = "bidirectional"
    share: ShareGroupConfig = ShareGroupConfig()
    streams: StreamsGroupConfig = StreamsGroupConfig()
