"""The round robin assignor: all partitions of all topics are dealt one by one.

The next subscriber in turn gets the partition. If all members subscribe to the same topics, their counts differ by at
most one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ottla.client.consumer.assignors.assignor import (
    Assignment,
    RebalanceProtocol,
    Subscription,
    instance_sort_key,
    java_sort_key,
    partition_counts,
)
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.model import TopicPartition


class RoundRobinAssignor:
    """One partition to each subscriber in turn."""

    name = "roundrobin"
    supported_protocols = (RebalanceProtocol.EAGER,)
    version = 0

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return None

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """Do nothing: the assignor has no state."""

    def assign(self, cluster: MetadataSnapshot, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        counts = partition_counts(cluster, subscriptions)
        members = sorted(subscriptions, key=lambda member: instance_sort_key(member, subscriptions[member]))
        wanted = {member: frozenset(subscriptions[member].topics) for member in members}
        given: dict[str, list[TopicPartition]] = {member: [] for member in members}
        turn = 0
        for topic in sorted(counts, key=java_sort_key):
            for number in range(counts[topic]):
                while topic not in wanted[members[turn]]:
                    turn = (turn + 1) % len(members)
                given[members[turn]].append(TopicPartition(topic, number))
                turn = (turn + 1) % len(members)
        return {member: Assignment(partitions) for member, partitions in given.items()}
