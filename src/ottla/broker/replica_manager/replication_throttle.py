"""Replication throttling (KIP-73): the throttled replicas of one side, and the time for which they are delayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ottla.clock import Clock
from ottla.coordination.replication.throttle import ReplicationThrottle, is_throttled
from ottla.model import INT64_MAX, TopicPartition

LEADER = "leader.replication.throttled.replicas"
FOLLOWER = "follower.replication.throttled.replicas"
Configs = Callable[[str], Mapping[str, str]]


class ThrottledReplicas:
    """The throttle of the leader's or the follower's side. Costs nothing without a rate."""

    def __init__(self, config: str, limit: Callable[[], int], configs: Configs, broker: int, clock: Clock) -> None:
        """`config` is the topic config that lists the throttled replicas; `limit` is in bytes a second."""
        self._config = config
        self._limit = limit
        self._configs = configs
        self._broker = broker
        self._clock = clock
        self._throttle = ReplicationThrottle()

    def throttle_time(self, partition: TopicPartition) -> float:
        """Return the seconds for which a lagging replica is throttled; 0 if it is not."""
        limit = self._limit()
        if limit == INT64_MAX or not self._is_throttled(partition):
            return 0.0
        return self._throttle.wait_seconds(limit, self._clock.monotonic())

    def record(self, partition: TopicPartition, size: int) -> None:
        """Count bytes of one replica."""
        self.record_all([(partition, size)])

    def record_all(self, taken: Iterable[tuple[TopicPartition, int]]) -> None:
        """Count bytes of several replicas."""
        if self._limit() == INT64_MAX:
            return
        size = sum(size for partition, size in taken if size and self._is_throttled(partition))
        if size:
            self._throttle.record(size, self._clock.monotonic())

    def _is_throttled(self, partition: TopicPartition) -> bool:
        named = self._configs(partition.topic).get(self._config, "")
        return bool(named) and is_throttled(
            [each.strip() for each in named.split(",")], partition.partition, self._broker
        )
