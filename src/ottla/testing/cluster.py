"""The cluster of the plugin: an `ottla.Cluster` that knows the leaders of partitions."""

from __future__ import annotations

from ottla.broker.embedding.local_cluster import Cluster
from ottla.errors import IllegalStateError


class TestedCluster(Cluster):
    """The cluster of the fixture `ottla_cluster`."""

    __test__ = False  # prevents collection by pytest

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of the node that leads a partition; raise KafkaError for an unknown topic."""
        from ottla import Admin

        with Admin(self.client_settings()) as admin:
            described = admin.describe_topics([str(topic)])[str(topic)]
        found = next((each.leader for each in described.partitions if each.partition == partition), -1)
        if found not in self.nodes:
            raise IllegalStateError(
                f"{topic}-{partition} has no leader: check that it exists and that one of its replicas runs"
            )
        return found

    def lose_leader(self, topic: str, partition: int = 0) -> int:
        """Kill the node that leads a partition, as a power cut would, and return its id; `start(…)` restarts it."""
        node = self.leader(topic, partition)
        self.kill(node)
        return node
