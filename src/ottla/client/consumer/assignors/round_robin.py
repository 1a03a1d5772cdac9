"""The round robin assignor: all partitions of all topics, dealt out one by one.

The next member in turn that wants the topic gets the partition. Where all want the same, their numbers differ by one
at most.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ottla.client.consumer.assignors.assignor import (
    Assignment,
    RebalanceProtocol,
    Subscription,
    by_instance,
    in_java,
    partition_counts,
)
from ottla.client.metadata.cluster import Cluster
from ottla.model import TopicPartition


class RoundRobinAssignor:
    """One partition to each in turn."""

    name = "roundrobin"
    supported_protocols = (RebalanceProtocol.EAGER,)
    version = 0

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        return None

    def on_assignment(self, assignment: Assignment, generation: int) -> None:
        """It remembers nothing."""

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        counts = partition_counts(cluster, subscriptions)
        members = sorted(subscriptions, key=lambda member: by_instance(member, subscriptions[member]))
        wanted = {member: frozenset(subscriptions[member].topics) for member in members}
        given: dict[str, list[TopicPartition]] = {member: [] for member in members}
        turn = 0
        for topic in sorted(counts, key=in_java):
            for number in range(counts[topic]):
                while topic not in wanted[members[turn]]:
                    turn = (turn + 1) % len(members)
                given[members[turn]].append(TopicPartition(topic, number))
                turn = (turn + 1) % len(members)
        return {member: Assignment(partitions) for member, partitions in given.items()}
