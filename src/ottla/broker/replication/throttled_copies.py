"""Which copies are throttled on one side of their way, and for how long they are held back by now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ottla.clock import Clock
from ottla.coordination.replication.throttle import ReplicationThrottle, names
from ottla.model import INT64_MAX, TopicPartition

LEADER = "leader.replication.throttled.replicas"
FOLLOWER = "follower.replication.throttled.replicas"
Configs = Callable[[str], Mapping[str, str]]


class ThrottledCopies:
    """Of the leader's side or the follower's. Costs nothing where no rate is set."""

    def __init__(self, config: str, limit: Callable[[], int], configs: Configs, broker: int, clock: Clock) -> None:
        """`config` names the copies in the topics' `configs`; `limit` is in bytes a second."""
        self._config = config
        self._limit = limit
        self._configs = configs
        self._broker = broker
        self._clock = clock
        self._throttle = ReplicationThrottle()

    def wait(self, partition: TopicPartition) -> float:
        """Seconds for which a copy that is behind is held back; 0 where it is not."""
        limit = self._limit()
        if limit == INT64_MAX or not self._are(partition):
            return 0.0
        return self._throttle.wait(limit, self._clock.monotonic())

    def record(self, partition: TopicPartition, size: int) -> None:
        """Count what a copy has taken."""
        self.record_all([(partition, size)])

    def record_all(self, taken: Iterable[tuple[TopicPartition, int]]) -> None:
        """Count what several have taken."""
        if self._limit() == INT64_MAX:
            return
        size = sum(size for partition, size in taken if size and self._are(partition))
        if size:
            self._throttle.record(size, self._clock.monotonic())

    def _are(self, partition: TopicPartition) -> bool:
        named = self._configs(partition.topic).get(self._config, "")
        return bool(named) and names([each.strip() for each in named.split(",")], partition.partition, self._broker)
