"""The heartbeat's thread of a consumer, as its user's thread sees it: begun with the first `poll`, woken, ended."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.group.heartbeat_thread import HeartbeatThread
from ottla.client.metadata.cluster import Cluster
from ottla.client.runtime.deadline import ClosingDeadline
from ottla.client.runtime.steps import Steps
from ottla.errors import OttlaError

TOPICS_PATIENCE = 5.0
"""Seconds that a leader waits to hear of topics that only other members want."""


class GroupThread:
    def __init__(self, client: ConsumerNetworkClient, make: Callable[[], HeartbeatThread]) -> None:
        self.thread: HeartbeatThread | None = None
        self._metadata = client.metadata
        self._clock = client.client.clock
        self._make = make

    def ensure(self) -> HeartbeatThread:
        """The thread, begun if there is none that lives."""
        if self.thread is None or not self.thread.is_alive():
            self.thread = self._make()
            self.thread.start()
        return self.thread

    def wake(self) -> None:
        """Have it look at the membership again."""
        if self.thread is not None:
            self.thread.wakeup()

    def end(self, deadline: ClosingDeadline) -> Steps[None]:
        """Wait until it has said everything."""
        thread = self.thread
        if thread is None or not thread.is_alive():
            return
        thread.wakeup()
        while not thread.ended and (left := deadline.at - self._clock.monotonic()) > 0:
            try:
                yield left
            except OttlaError:  # the user's connections are in trouble, which is of no importance any more
                self._metadata.fatal = None
        if thread.ended:
            thread.join()

    def cluster_of(self, topics: Collection[str]) -> Cluster:
        """For the leader, in the heartbeat's thread: the cluster with these topics, as far as there are such."""
        cluster = self._metadata.cluster  # a snapshot, replaced as a whole
        if all(topic in cluster.topics for topic in topics):
            return cluster
        assert self.thread is not None
        return self.thread.cluster_of(topics, TOPICS_PATIENCE)
