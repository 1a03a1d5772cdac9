"""Run the checker over three combined nodes of ours. The active controller and a plain broker are killed in turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla import Admin, Cluster
from ottla.errors import KafkaError
from rivals.kafka_cluster import wait_for
from tests.checker.generator import KILLED, Crash, planned
from tests.checker.history import Ended
from tests.checker.play import play
from tests.checker.verdict import verdict

CRASHES = 6
EVENTS_APART = 60
COPIES = ((1, 2, 3), (2, 3, 1), (3, 1, 2))


class DyingNodes:
    """The cluster as the checker's victim. All nodes run at the start and at the end."""

    def __init__(self, cluster: Cluster) -> None:
        self.address = cluster.bootstrap_servers
        self.deciders = self.others = 0
        """The number of kills of either kind."""
        self._cluster = cluster
        self._dead = 0

    def start(self, crash: Crash | None = None) -> None:
        if self._dead:
            self._cluster.start(self._dead)
            wait_for(self._all_in_sync, "all copies are in sync again")
            self._dead = 0

    def kill(self) -> None:
        with Admin(self._cluster.client_settings()) as admin:
            decider = int(admin.describe_metadata_quorum().leader_id)
        if self.deciders > self.others:
            self._dead, self.others = decider % len(self._cluster.nodes) + 1, self.others + 1
        else:
            self._dead, self.deciders = decider, self.deciders + 1
        self._cluster.kill(self._dead)

    def _all_in_sync(self) -> bool:
        try:
            with Admin(self._cluster.client_settings()) as admin:
                topics = admin.describe_topics().values()
        except KafkaError:
            return False
        return all(len(each.in_sync_replicas) == len(each.replicas) for topic in topics for each in topic.partitions)

    def is_dead(self, timeout: float) -> bool:
        """Return False: a node never dies by itself."""
        return False

    def wait(self) -> None:
        """Return at once: the node is dead when `kill` returns."""


@pytest.mark.long
@pytest.mark.behaviour("B4", "P3")
def test_the_checker_finds_no_error_while_controllers_and_brokers_are_killed() -> None:
    plan = replace(planned(700, steps=40), crashes=(Crash(KILLED, EVENTS_APART),) * CRASHES)
    with Cluster() as cluster:
        victim = DyingNodes(cluster)
        events = play(plan, victim, COPIES)
    assert verdict(events) == []
    assert victim.deciders
    assert victim.others
    assert sum(isinstance(event, Ended) for event in events) > 40
