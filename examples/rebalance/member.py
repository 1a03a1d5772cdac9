"""A member of the group: a consumer in a thread of its own, which polls, or sleeps on request."""

from __future__ import annotations

import threading
from typing import Any

from ottla import Consumer
from ottla.trace import Trace

POLL_SECONDS = 0.02


class Member:
    """A consumer with a name. At `close` it leaves the group; a static member closes without a LeaveGroup request."""

    def __init__(self, name: str, servers: str, topic: str, **settings: Any) -> None:
        self.name = name
        self.consumer = Consumer(bootstrap_servers=servers, client_id=name, auto_offset_reset="earliest", **settings)
        self.trace: Trace = self.consumer.trace()
        self._topic = topic
        self._ended = threading.Event()
        self._awake = threading.Event()
        self._awake.set()
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def sleep(self) -> None:
        """Stop polling until `wake`."""
        self._awake.clear()

    def wake(self) -> None:
        self._awake.set()

    def partitions(self) -> set[int]:
        """Return the owned partitions, or an empty set while the membership is not stable."""
        seen = self.consumer.snapshot()
        if seen.coordinator is None or seen.coordinator.state != "stable":
            return set()
        return {view.partition.partition for view in seen.subscription.partitions}

    def close(self) -> None:
        """Close the consumer and wait for its thread."""
        self._ended.set()
        self.wake()
        self._thread.join()

    def _run(self) -> None:
        self.consumer.subscribe([self._topic])
        try:
            while not self._ended.is_set():
                self.consumer.poll(POLL_SECONDS)
                self._awake.wait()
        finally:
            self.consumer.close()
