"""The log of the cluster's metadata: its name, which no client's topic has, and its config."""

from __future__ import annotations

from ottla.model import INT32_MAX, TopicPartition
from ottla.storage.log_config import LogConfig

CLUSTER_METADATA = "__cluster_metadata"
METADATA_PARTITION = TopicPartition(CLUSTER_METADATA, 0)
METADATA_LOG = LogConfig(max_message_bytes=INT32_MAX, segment_bytes=INT32_MAX, retention_ms=-1)
"""Nothing is rejected for its size, and snapshots decide what is deleted."""
