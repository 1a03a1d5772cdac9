"""The cluster of the plugin: an `ottla.Cluster` that knows who leads."""

from __future__ import annotations

from ottla.broker.local_cluster import Cluster
from ottla.errors import IllegalStateError


class TestedCluster(Cluster):
    """What `ottla_cluster` is."""

    __test__ = False  # pytest takes it for no test

    def leader(self, topic: str, partition: int = 0) -> int:
        """The number of the node that leads a partition; KafkaError where there is no such topic."""
        from ottla import Admin

        with Admin(self.client_settings()) as admin:
            described = admin.describe_topics([str(topic)])[str(topic)]
        found = next((each.leader for each in described.partitions if each.partition == partition), -1)
        if found not in self.nodes:
            raise IllegalStateError(f"nobody leads {topic}-{partition}: is it there, and does one of its copies run?")
        return found

    def lose_leader(self, topic: str, partition: int = 0) -> int:
        """Kill the node that leads a partition, as a power cut would, and return its number: `start(…)` brings it back."""
        node = self.leader(topic, partition)
        self.kill(node)
        return node
