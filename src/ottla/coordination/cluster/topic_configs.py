"""What a topic can be told: Kafka's topic configs, their types, bounds and defaults.

A value is checked here when a topic is made or changed; who acts on it reads it elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

from ottla.config import Between, Option, convert, options_of, unknown
from ottla.errors import ConfigError
from ottla.model import INT32_MAX, INT64_MAX
from ottla.settings_class import settings

COMPACTION_LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")

Count = Annotated[int, Between(0, INT64_MAX)]
Bytes = Annotated[int, Between(0, INT32_MAX)]
Ratio = Annotated[float, Between(0, 1)]


@settings
class TopicConfig:
    """Every config a topic has, with Kafka's default."""

    cleanup_policy: tuple[Literal["delete", "compact"], ...] = ("delete",)
    """What happens to old records: "delete" drops whole segments, "compact" keeps the last record of each key."""
    compression_type: Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] = "producer"
    """How records are compressed on disk; "producer" keeps what the producer did."""
    compression_gzip_level: Literal[-1, 1, 2, 3, 4, 5, 6, 7, 8, 9] = -1
    """Level of gzip, -1 for its own default."""
    compression_lz4_level: Annotated[int, Between(1, 17)] = 9
    """Level of lz4."""
    compression_zstd_level: Annotated[int, Between(-131072, 22)] = 3
    """Level of zstd."""
    delete_retention_ms: Count = 86_400_000
    """How long compaction keeps the mark of a deleted key."""
    file_delete_delay_ms: Count = 60_000
    """How long a deleted segment's file stays."""
    flush_messages: Annotated[int, Between(1, INT64_MAX)] = INT64_MAX
    """Records after which the log is forced to the disk."""
    flush_ms: Count = INT64_MAX
    """Time after which appended records are forced to the disk."""
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    """Copies whose replication is throttled on the follower's side."""
    index_interval_bytes: Bytes = 4096
    """Bytes of log between two index entries."""
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    """Copies whose replication is throttled on the leader's side."""
    local_retention_bytes: Annotated[int, Between(-2, INT64_MAX)] = -2
    """Size kept on the broker's own disk where older segments are stored elsewhere; -2 is `retention.bytes`."""
    local_retention_ms: Annotated[int, Between(-2, INT64_MAX)] = -2
    """Age kept on the broker's own disk where older segments are stored elsewhere; -2 is `retention.ms`."""
    max_compaction_lag_ms: Annotated[int, Between(1, INT64_MAX)] = INT64_MAX
    """Age at which a record must have been compacted."""
    max_message_bytes: Bytes = 1_048_588
    """Largest record batch taken."""
    message_timestamp_after_max_ms: Count = 3_600_000
    """How far a record's timestamp may lie ahead of the broker's clock."""
    message_timestamp_before_max_ms: Count = INT64_MAX
    """How far a record's timestamp may lie behind the broker's clock."""
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    """Whose clock stamps the records."""
    min_cleanable_dirty_ratio: Ratio = 0.5
    """Share of uncompacted log from which compaction is worth it."""
    min_compaction_lag_ms: Count = 0
    """Age below which a record is not compacted."""
    min_insync_replicas: Annotated[int, Between(1, INT32_MAX)] = 1
    """Copies in sync that a write with `acks=all` needs."""
    preallocate: bool = False
    """Whether segment files get their full size at once."""
    remote_log_copy_disable: bool = False
    """Whether segments are no longer copied to remote storage."""
    remote_log_delete_on_disable: bool = False
    """Whether remote segments go when remote storage is switched off."""
    remote_storage_enable: bool = False
    """Whether old segments are kept in remote storage."""
    retention_bytes: Annotated[int, Between(-1, INT64_MAX)] = -1
    """Size of a partition above which its oldest segments are deleted; -1 is no limit."""
    retention_ms: Annotated[int, Between(-1, INT64_MAX)] = 604_800_000
    """Age after which a segment is deleted; -1 is never."""
    segment_bytes: Annotated[int, Between(1_048_576, INT32_MAX)] = 1_073_741_824
    """Size at which a segment is closed and the next one begun."""
    segment_index_bytes: Annotated[int, Between(4, INT32_MAX)] = 10_485_760
    """Size of an index at which its segment is closed."""
    segment_jitter_ms: Count = 0
    """Most that `segment.ms` is shortened by chance, so that segments do not all close at once."""
    segment_ms: Annotated[int, Between(1, INT64_MAX)] = 604_800_000
    """Age at which a segment is closed, full or not."""
    unclean_leader_election_enable: bool = False
    """Whether a copy that lags may lead when no other is left, at the price of records."""


class Source(IntEnum):
    """Where a config has its value from, as the protocol counts them."""

    TOPIC = 1
    CHANGED = 2
    """The broker's settings, changed at run time."""
    CHANGED_FOR_ALL = 3
    """The same, for every broker of the cluster."""
    BROKER = 4
    """The settings with which the broker was started."""
    DEFAULT = 5
    SUBSCRIPTION = 7
    """To metrics of clients."""
    GROUP = 8


class Setting(NamedTuple):
    """A config of a topic as it is in force."""

    name: str
    value: str
    source: Source


@cache
def table() -> dict[str, Option]:
    """The configs by their dotted names."""
    return {option.name: option for option in options_of(TopicConfig)}


@cache
def defaults() -> dict[str, str]:
    """Kafka's defaults as text, in order of their names."""
    return {name: as_text(option.default) for name, option in sorted(table().items())}


def as_text(value: Any) -> str:
    """A value as topics write theirs."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def settings_of(configs: Mapping[str, str], broker: Mapping[str, str]) -> list[Setting]:
    """Every config of a topic that sets `configs` itself, on a broker whose settings make `broker` the default."""
    return [
        Setting(name, configs[name], Source.TOPIC)
        if name in configs
        else Setting(name, broker[name], Source.BROKER)
        if name in broker
        else Setting(name, default, Source.DEFAULT)
        for name, default in defaults().items()
    ]


def fault_of(name: str, value: str | None) -> str | None:
    """What is wrong with one config of a topic, in a sentence; None when nothing is."""
    option = table().get(name)
    if option is None:
        return unknown("topic config", name, table())
    if value is None:
        return f"{name} has no value"
    try:
        convert(name, value, option.type)
    except ConfigError as error:
        return str(error)
    return None


def conflict_of(configs: Mapping[str, str]) -> str | None:
    """What is wrong with a topic's configs taken together, each of them being right; None when nothing is."""
    if configs.get("remote.storage.enable", "").strip().lower() == "true":
        return "remote.storage.enable = true: this broker keeps records on its own disk only"
    least, most = (int(configs.get(name, table()[name].default)) for name in COMPACTION_LAGS)
    if least > most:
        return f"min.compaction.lag.ms = {least}: must be at most max.compaction.lag.ms = {most}"
    return None
