"""The topic configs of Kafka: types, limits and defaults.

A value is validated here when a topic is created or changed. The code that applies a config reads it from the topic.
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

SCHEMA_VALIDATION = {"key": "key.schema.validation", "value": "value.schema.validation"}
"""The configs of this broker that Kafka does not have, by the column of records that they are about."""
COMPACTION_LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")

Count = Annotated[int, Between(0, INT64_MAX)]
Bytes = Annotated[int, Between(0, INT32_MAX)]
Ratio = Annotated[float, Between(0, 1)]


@settings
class TopicConfig:
    """All configs of a topic, with Kafka's defaults."""

    cleanup_policy: tuple[Literal["delete", "compact"], ...] = ("delete",)
    """The treatment of old records: "delete" deletes whole segments, "compact" keeps the last record of each key."""
    compression_type: Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] = "producer"
    """The compression of records on disk; "producer" keeps that of the producer."""
    compression_gzip_level: Literal[-1, 1, 2, 3, 4, 5, 6, 7, 8, 9] = -1
    """The compression level of gzip; -1 is its default."""
    compression_lz4_level: Annotated[int, Between(1, 17)] = 9
    """The compression level of lz4."""
    compression_zstd_level: Annotated[int, Between(-131072, 22)] = 3
    """The compression level of zstd."""
    delete_retention_ms: Count = 86_400_000
    """The time for which compaction keeps the tombstone of a deleted key."""
    errors_deadletterqueue_group_enable: bool = False
    """True if share groups may use the topic as a dead letter queue (KIP-1191)."""
    file_delete_delay_ms: Count = 60_000
    """The delay before the file of a deleted segment is removed."""
    flush_messages: Annotated[int, Between(1, INT64_MAX)] = INT64_MAX
    """The number of records after which the log is flushed to disk."""
    flush_ms: Count = INT64_MAX
    """The time after which appended records are flushed to disk."""
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    """The replicas with throttled replication on the follower."""
    index_interval_bytes: Bytes = 4096
    """The number of bytes of the log between two index entries."""
    key_schema_validation: bool = False
    """True if the schema of each key has to be registered under the subject TOPIC-key; needs the broker's `schema.registry.url`."""
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    """The replicas with throttled replication on the leader."""
    local_retention_bytes: Annotated[int, Between(-2, INT64_MAX)] = -2
    """The size kept on the broker's disk if older segments are in remote storage; -2 is `retention.bytes`."""
    local_retention_ms: Annotated[int, Between(-2, INT64_MAX)] = -2
    """The age kept on the broker's disk if older segments are in remote storage; -2 is `retention.ms`."""
    max_compaction_lag_ms: Annotated[int, Between(1, INT64_MAX)] = INT64_MAX
    """The age at which a record must have been compacted."""
    max_decompressed_message_bytes: Bytes = 2_147_483_639
    """The maximum size of a record in a compressed batch, without compression, in bytes.

    A produced batch with a larger record is rejected with INVALID_RECORD. With a value below the default, the broker decompresses each
    batch to check it. Records that are stored already are not affected.
    """
    max_message_bytes: Bytes = 1_048_588
    """The maximum size of a record batch."""
    message_timestamp_after_max_ms: Count = 3_600_000
    """The time by which the timestamp of a record may be ahead of the broker's clock."""
    message_timestamp_before_max_ms: Count = INT64_MAX
    """The time by which the timestamp of a record may be behind the broker's clock."""
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    """The timestamp of records: set by the producer, or by the broker when it appends them."""
    min_cleanable_dirty_ratio: Ratio = 0.5
    """The share of the log that is not compacted yet at which compaction starts."""
    min_compaction_lag_ms: Count = 0
    """The age below which a record is not compacted."""
    min_insync_replicas: Annotated[int, Between(1, INT32_MAX)] = 1
    """The minimum size of the ISR for a write with `acks=all`."""
    preallocate: bool = False
    """True if segment files are created with their full size."""
    remote_copy_lag_bytes: Annotated[int, Between(-1, INT64_MAX)] = -1
    """The size by which remote storage may lag behind the log (KIP-1241). Has no effect here."""
    remote_copy_lag_ms: Annotated[int, Between(-1, INT64_MAX)] = 0
    """The time by which remote storage may lag behind the log (KIP-1241). Has no effect here."""
    remote_log_copy_disable: bool = False
    """True if segments are not copied to remote storage any more."""
    remote_log_delete_on_disable: bool = False
    """True if remote segments are deleted when remote storage is disabled."""
    remote_storage_enable: bool = False
    """True if old segments are kept in remote storage."""
    retention_bytes: Annotated[int, Between(-1, INT64_MAX)] = -1
    """The size of a partition above which its oldest segments are deleted; -1 is no limit."""
    retention_ms: Annotated[int, Between(-1, INT64_MAX)] = 604_800_000
    """The age after which a segment is deleted; -1 is never."""
    segment_bytes: Annotated[int, Between(1_048_576, INT32_MAX)] = 1_073_741_824
    """The size at which a segment is closed and the next one is started."""
    segment_index_bytes: Annotated[int, Between(4, INT32_MAX)] = 10_485_760
    """The size of an index at which its segment is closed."""
    segment_jitter_ms: Count = 0
    """The maximum random reduction of `segment.ms`, so that segments do not all close at once."""
    segment_ms: Annotated[int, Between(1, INT64_MAX)] = 604_800_000
    """The age at which a segment is closed even if it is not full."""
    unclean_leader_election_enable: bool = False
    """True if a replica outside the ISR may be elected when no other is available. Committed records may be lost."""
    value_schema_validation: bool = False
    """True if the schema of each value has to be registered under the subject TOPIC-value; needs the broker's `schema.registry.url`."""


class ConfigSource(IntEnum):
    """The origin of the value of a config, with the protocol's numbers."""

    TOPIC = 1
    CHANGED = 2
    """The settings of the broker, changed at run time."""
    CHANGED_FOR_ALL = 3
    """The settings of all brokers, changed at run time."""
    BROKER = 4
    """The settings with which the broker was started."""
    DEFAULT = 5
    SUBSCRIPTION = 7
    """A client metrics subscription."""
    GROUP = 8


class TopicSetting(NamedTuple):
    """The effective value of a topic config."""

    name: str
    value: str
    source: ConfigSource


@cache
def list_options() -> dict[str, Option]:
    """Return the configs by their dotted names."""
    return {option.name: option for option in options_of(TopicConfig)}


@cache
def list_defaults() -> dict[str, str]:
    """Return Kafka's defaults as text, ordered by name."""
    return {name: format_value(option.default) for name, option in sorted(list_options().items())}


def format_value(value: Any) -> str:
    """Return a value in the text format of topic configs."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def list_settings(configs: Mapping[str, str], broker: Mapping[str, str]) -> list[TopicSetting]:
    """Return every config of a topic that sets `configs`, on a broker with the defaults in `broker`."""
    return [
        TopicSetting(name, configs[name], ConfigSource.TOPIC)
        if name in configs
        else TopicSetting(name, broker[name], ConfigSource.BROKER)
        if name in broker
        else TopicSetting(name, default, ConfigSource.DEFAULT)
        for name, default in list_defaults().items()
    ]


def find_fault(name: str, value: str | None) -> str | None:
    """Return the error of an invalid config; None if it is valid."""
    option = list_options().get(name)
    if option is None:
        return unknown("topic config", name, list_options())
    if value is None:
        return f"{name} has no value"
    try:
        convert(name, value, option.type)
    except ConfigError as error:
        return str(error)
    return None


def find_conflict(configs: Mapping[str, str]) -> str | None:
    """Return the error if valid configs conflict with each other; None if they do not."""
    if configs.get("remote.storage.enable", "").strip().lower() == "true":
        return "remote.storage.enable = true: this broker keeps records on its own disk only"
    least, most = (int(configs.get(name, list_options()[name].default)) for name in COMPACTION_LAGS)
    if least > most:
        return f"min.compaction.lag.ms = {least}: must be at most max.compaction.lag.ms = {most}"
    return None


def validated_columns(configs: Mapping[str, str]) -> list[str]:
    """Return `key` and `value` as far as the configs of a topic require registered schemas."""
    return [column for column, name in SCHEMA_VALIDATION.items() if configs.get(name, "").strip().lower() == "true"]
