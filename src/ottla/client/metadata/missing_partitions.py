"""Reports partitions that a client waits for and that their topics do not have.

A partition may appear: its topic grows, or news of it is on the way. So the client waits, and logs a warning after a second.
"""

from __future__ import annotations

import logging

from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.model import FOREVER, TopicPartition

LOG = logging.getLogger(__name__)
PATIENCE_SECONDS = 1.0
"""How long a partition may be missing until a warning is logged."""


class MissingPartitions:
    """The time since which each partition has been missing; a warning is logged once, and again if it disappears again."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._since: dict[TopicPartition, float] = {}

    def check_partition(self, tp: TopicPartition, cluster: MetadataSnapshot, now: float) -> None:
        """Look at one partition that the client needs; call again with each new metadata. From any thread."""
        topic = cluster.topics.get(tp.topic)
        if topic is None or tp.partition < len(topic.partitions):
            self.remove_partition(tp)
            return
        if now - self._since.setdefault(tp, now) >= PATIENCE_SECONDS:
            self._since[tp] = FOREVER
            LOG.warning(
                "[%s] partition does not exist, waiting for it: topic=%s partition=%d existing=%s",
                self._client_id,
                tp.topic,
                tp.partition,
                topic.partition_range,
            )

    def remove_partition(self, tp: TopicPartition) -> None:
        """Stop waiting for the partition."""
        self._since.pop(tp, None)
