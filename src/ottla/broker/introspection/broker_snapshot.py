"""A snapshot of a whole broker, taken in its event loop.

It has to be fast: nothing is read from the disk, and long collections are sampled.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import islice

from ottla.broker.introspection.group_views import group_view
from ottla.broker.introspection.log_views import partition_view
from ottla.broker.introspection.views import (
    BrokerSnapshot,
    CleanerView,
    ClientView,
    DirtyView,
    GroupView,
    PartitionLogView,
    RequestLatencyView,
    WaitView,
)
from ottla.broker.network_server.request_counts import RequestCounts
from ottla.broker.network_server.request_latencies import Latencies
from ottla.broker.node import BrokerNode
from ottla.coordination.groups.consumer.member import TopicIdPartition
from ottla.coordination.groups.events import TimerName
from ottla.model import TopicPartition
from ottla.protocol.apis import APIS

MOST_WAITING = 60
MOST_GROUPS = 30
MOST_LOOKED_AT = 500
"""The groups that are searched for those that are rebalancing."""
MOST_PARTITIONS = 24
MOST_DIRTY = 24
MOST_CLIENTS = 20


class SnapshotBuilder:
    """Takes snapshots, and remembers the logs that have changed recently, which are listed first."""

    def __init__(
        self, node: BrokerNode, causes: Mapping[str, str], counts: RequestCounts, latencies: Latencies
    ) -> None:
        self._node = node
        self._causes = causes
        """The cause of each group's last rebalance."""
        self._latencies = latencies
        self._counts = counts
        self._ends: OrderedDict[TopicPartition, int] = OrderedDict()
        """The end offset of each log, the last one changed at the end."""

    def build(self, connections: int) -> BrokerSnapshot:
        node, now = self._node, self._node.clock.monotonic()
        waiting = tuple(islice(self._waiting(now), MOST_WAITING))
        groups = tuple(islice(self._groups(now), MOST_GROUPS))
        partitions = tuple(self._partitions(now))
        return BrokerSnapshot(
            node.config.node_id,
            waiting,
            len(node.waiting) - len(waiting),
            groups,
            node.groups.loaded_count - len(groups),
            partitions,
            len(self._ends) - len(partitions),
            self._cleaner(now),
            tuple(request_views(self._latencies)),
            tuple(ClientView(*each) for each in islice(self._counts.by_client(), MOST_CLIENTS)),
            connections,
        )

    def _waiting(self, now: float) -> Iterator[WaitView]:
        """Yield waiting requests, the longest wait first."""
        for each in self._node.waiting:
            since = None if each.call is None else (now - each.call.received) * 1000
            left = 0.0 if each.timer is None else (each.timer.deadline - now) * 1000
            waits = (each.api, each.client_id, each.correlation_id, each.places)
            yield WaitView(*waits, max(0, each.missing_bytes), since, max(0.0, left))

    def _groups(self, now: float) -> Iterator[GroupView]:
        """Yield groups, those that are rebalancing first."""
        at_rest = ("Stable", "Empty", "Dead")
        looked_at = islice(self._node.groups.loaded_groups(), MOST_LOOKED_AT)
        for group, due_at in sorted(looked_at, key=lambda found: str(found[0].state) in at_rest):

            def due(name: TimerName, due_at=due_at) -> float | None:  # type: ignore[no-untyped-def]
                at = due_at(name)
                return None if at is None else max(0.0, at - now) * 1000

            yield group_view(group, self._causes.get(group.group_id, ""), due, self._named)

    def _named(self, partition: TopicIdPartition) -> str:
        topic = self._node.topics.with_id(partition[0])
        return f"{partition[0] if topic is None else topic.name}-{partition[1]}"

    def _partitions(self, now: float) -> Iterator[PartitionLogView]:
        """Yield partitions, the last ones changed first, then by name; empty and internal ones last."""
        opened = {each.topic_partition: each for each in self._node.partitions if each.opened_log is not None}
        for place, partition in opened.items():
            end = partition.log.end_offset if partition.fault is None else -1
            if self._ends.get(place) != end:
                self._ends[place] = end
                self._ends.move_to_end(place, last=end > 0)
        for gone in self._ends.keys() - opened.keys():
            del self._ends[gone]
        latest = islice(reversed(self._ends), MOST_PARTITIONS)
        for partition in sorted(
            map(opened.__getitem__, latest), key=lambda each: (each.internal, each.topic_partition)
        ):
            if partition.fault is None and not partition.log.closed:
                yield partition_view(partition, partition.log, now)

    def _cleaner(self, now: float) -> CleanerView:
        cleaning = self._node.cleaning
        logs = sorted(cleaning.checked_at.items(), key=lambda found: -found[1])[:MOST_DIRTY]
        return CleanerView(
            None if cleaning.current is None else str(cleaning.current[0]),
            None if cleaning.current is None else (now - cleaning.current[1]) * 1000,
            tuple(
                DirtyView(str(partition), ratio, log.config.min_cleanable_dirty_ratio, partition in cleaning.due)
                for partition, ratio in logs
                if (log := partition.opened_log) is not None and not log.closed
            ),
        )


def request_views(latencies: Latencies) -> Iterator[RequestLatencyView]:
    """Yield the APIs with requests, the most frequent first."""
    counted = [(key, buckets) for key, (buckets, _) in latencies.buckets().items() if key in APIS]
    for key, buckets in sorted(counted, key=lambda found: -found[1][-1][1]):
        count = int(buckets[-1][1])
        yield RequestLatencyView(APIS[key].name, count, *(percentile_ms(buckets, share) for share in (0.5, 0.95, 0.99)))


def percentile_ms(buckets: list[tuple[str, float]], share: float) -> float | None:
    """Return the bound below which that share of all values is, None if it is above the last bound."""
    wanted = share * buckets[-1][1]
    bound = next((bound for bound, count in buckets if count >= wanted), "+Inf")
    return None if bound == "+Inf" else float(bound) * 1000
