"""The broker settings that are the defaults of topic configs."""

from __future__ import annotations

from collections.abc import Mapping

TOPIC_CONFIGS: Mapping[str, str] = {
    "segment.bytes": "log_segment_bytes",
    "segment.ms": "log_roll_ms",
    "segment.index.bytes": "log_index_size_max_bytes",
    "index.interval.bytes": "log_index_interval_bytes",
    "max.message.bytes": "message_max_bytes",
    "max.decompressed.message.bytes": "max_decompressed_message_bytes",
    "message.timestamp.type": "log_message_timestamp_type",
    "message.timestamp.before.max.ms": "log_message_timestamp_before_max_ms",
    "message.timestamp.after.max.ms": "log_message_timestamp_after_max_ms",
    "compression.type": "compression_type",
    "compression.gzip.level": "compression_gzip_level",
    "compression.lz4.level": "compression_lz4_level",
    "compression.zstd.level": "compression_zstd_level",
    "flush.messages": "log_flush_interval_messages",
    "flush.ms": "log_flush_interval_ms",
    "cleanup.policy": "log_cleanup_policy",
    "retention.ms": "log_retention_ms",
    "retention.bytes": "log_retention_bytes",
    "min.insync.replicas": "min_insync_replicas",
    "min.cleanable.dirty.ratio": "log_cleaner_min_cleanable_ratio",
    "min.compaction.lag.ms": "log_cleaner_min_compaction_lag_ms",
    "max.compaction.lag.ms": "log_cleaner_max_compaction_lag_ms",
    "delete.retention.ms": "log_cleaner_delete_retention_ms",
}
"""A topic's config → the broker's setting that is its default."""
