"""Send flights to a cluster while a leader and then the active controller are killed and restarted.

Records the times.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

from examples.flights.replay import Record
from ottla import Admin, Cluster, Consumer, NewTopic, Producer, TopicPartition
from ottla.errors import KafkaError

TOPIC, PARTITIONS = "flights", 6
WAIT_SECONDS = 120.0
LOOK_SECONDS = 0.01
PIECE = 500
"""The number of flights that are sent between two checks of the clock."""


@dataclass
class Story:
    """The events of a run. Times are seconds since the first flight was sent."""

    acknowledged: list[float] = field(default_factory=list)
    """The time of each acknowledgement."""
    events: list[tuple[float, str]] = field(default_factory=list)
    """The events of the cluster."""
    failed: list[str] = field(default_factory=list)

    def longest_pause(self, since: float, until: float) -> float:
        """Seconds without an acknowledgement between two moments."""
        moments = [since, *sorted(each for each in self.acknowledged if since < each < until), until]
        return max(after - before for before, after in pairwise(moments))


def play(cluster: Cluster, flights: Sequence[Record], per_second: int, tell: Callable[[str], None]) -> Story:
    """Send all flights. At 1/6 the broker with most leaders is killed, and at 1/2 the active controller."""
    story = Story()
    with Admin(cluster.client_settings()) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, configs={"retention.ms": "-1"})])
        begun = time.monotonic()

        def happened(what: str) -> None:
            story.events.append((time.monotonic() - begun, what))
            tell(f"{story.events[-1][0]:5.1f} s  {what}")

        with (
            Plot(cluster, admin, happened) as plot,
            Producer({**cluster.client_settings(), "acks": "all", "linger.ms": 5}) as producer,
        ):
            for first in range(0, len(flights), PIECE):
                for record in flights[first : first + PIECE]:
                    sent = producer.send(TOPIC, record.value, key=record.key, timestamp=record.timestamp)
                    sent.add_done_callback(lambda done: record_delivery(story, done, begun))
                plot.share = first / len(flights)
                behind = begun + (first + PIECE) / per_second - time.monotonic()
                time.sleep(max(behind, 0.0))  # without a pause the picture would show nothing
            producer.flush(WAIT_SECONDS)
            plot.share = 1.0
    return story


def record_delivery(story: Story, done: Any, begun: float) -> None:
    """Record an acknowledgement, or an error."""
    error = done.exception()
    if error is None:
        story.acknowledged.append(time.monotonic() - begun)
    else:
        story.failed.append(str(error))


class Plot:
    """Kills and restarts nodes at fixed shares of the flights, in a thread of its own."""

    def __init__(self, cluster: Cluster, admin: Admin, happened: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._admin = admin
        self._happened = happened
        self._due = [
            (1 / 6, self._kill_leader),
            (1 / 3, self._revive),
            (1 / 2, self._kill_controller),
            (3 / 4, self._revive),
        ]
        self._away: int | None = None
        self.share = 0.0
        """The share of the flights that has been sent."""
        self._thread = threading.Thread(target=self._run, name="plot")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.share = 1.0
        self._thread.join()

    def _run(self) -> None:
        for share, step in self._due:
            while self.share < share:
                time.sleep(LOOK_SECONDS)
            step()

    def _controller(self) -> int:
        return int(self._admin.describe_metadata_quorum().leader_id)

    def _kill_leader(self) -> None:
        partitions = self._admin.describe_topics([TOPIC])[TOPIC].partitions
        led = Counter(each.leader for each in partitions if each.leader != self._controller())
        self._kill(led.most_common(1)[0][0], "which leads partitions")

    def _kill_controller(self) -> None:
        self._kill(self._controller(), "which decides, and leads partitions")

    def _kill(self, node: int, what: str) -> None:
        self._away = node
        self._cluster.kill(node)
        self._happened(f"kill −9 of node {node}, {what}")

    def _revive(self) -> None:
        if self._away is not None:
            self._cluster.start(self._away)
            self._happened(f"node {self._away} is back")
            self._away = None


def counted(cluster: Cluster) -> Counter[bytes]:
    """Count how often each flight is in the topic."""
    places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    found: Counter[bytes] = Counter()
    with Consumer({**cluster.client_settings(), "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < ends[each] for each in places):
            try:
                found.update(each.value or b"" for each in consumer.poll(1.0))
            except KafkaError as error:
                if not error.retriable:
                    raise
    return found
