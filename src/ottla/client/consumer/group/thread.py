"""The heartbeat thread as the user's thread sees it: started by the first `poll`, woken, and ended."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.group.heartbeat_thread import HeartbeatThread
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.client.runtime.deadline import ClosingDeadline
from ottla.client.runtime.steps import Steps
from ottla.errors import OttlaError

TOPICS_PATIENCE = 5.0
"""Seconds that a leader waits for metadata of topics that only other members subscribe to."""
LAST_TURNS = 100
LAST_TURN_SECONDS = 0.01
"""The number and length of the pauses after the deadline in which the thread can still write the leave request."""


class GroupThread:
    def __init__(self, client: ConsumerNetworkClient, make: Callable[[], HeartbeatThread]) -> None:
        self.thread: HeartbeatThread | None = None
        self._metadata = client.metadata
        self._clock = client.client.clock
        self._make = make

    def ensure_running(self) -> HeartbeatThread:
        """Return the thread, starting one if none is running."""
        if self.thread is None or not self.thread.is_alive():
            self.thread = self._make()
            self.thread.start()
        return self.thread

    def wake(self) -> None:
        """Make the thread check the membership again."""
        if self.thread is not None:
            self.thread.wakeup()

    def stop(self, deadline: ClosingDeadline) -> Steps[None]:
        """Wait until the thread has finished. After the deadline, only wait until it has written the leave request.

        If the operating system suspends the process, the deadline may pass before the thread has run. Therefore a fixed
        number of pauses follows the deadline, in which the thread can run. Without the leave request the other members
        would wait for the session to expire.
        """
        thread = self.thread
        if thread is None or not thread.is_alive():
            return
        first_turn = thread.turns
        thread.wakeup()
        while not thread.ended and (left := deadline.at - self._clock.monotonic()) > 0:
            yield from self._pause(left)
        for _ in range(LAST_TURNS):
            if thread.ended or thread.has_sent_since(first_turn):
                break
            thread.wakeup()
            yield from self._pause(LAST_TURN_SECONDS)
        if thread.ended:
            thread.join()

    def _pause(self, span: float) -> Steps[None]:
        try:
            yield span
        except OttlaError:  # errors of the user's connections do not matter any more
            self._metadata.fatal = None

    def fetch_cluster(self, topics: Collection[str]) -> MetadataSnapshot:
        """Return the cluster with these topics, for the leader in the heartbeat thread."""
        cluster = self._metadata.cluster  # an immutable snapshot
        if all(topic in cluster.topics for topic in topics):
            return cluster
        assert self.thread is not None
        return self.thread.fetch_cluster(topics, TOPICS_PATIENCE)
