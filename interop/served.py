"""The broker side of a series of kills: one broker of ours, or three nodes of ours that are killed one or two at a
time.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ottla import Admin, Broker, Cluster
from tests.patience import eventually

SETTINGS: dict[str, Any] = {"group_min_session_timeout_ms": 1000, "transaction_partition_verification_enable": True}


class Served(Protocol):
    """A broker or a cluster under test."""

    address: str

    def kill(self, until_more: Callable[[], None]) -> None:
        """Kill the broker or some nodes, and start them again.

        `until_more` returns after the clients have made progress.
        """

    def close(self) -> None:
        """Stop the broker or the cluster."""


class OneBroker:
    """One broker, which is killed and restarted with its data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._broker = self._start("127.0.0.1:0")
        self.address = self._broker.bootstrap_servers

    def kill(self, until_more: Callable[[], None]) -> None:
        os.kill(self._broker.pid, signal.SIGKILL)
        self._broker.close()
        self._broker = self._start(self.address)

    def close(self) -> None:
        self._broker.close()

    def _start(self, listen: str) -> Broker:
        return Broker(self._folder, listen=listen, process=True, **SETTINGS).start()


class ThreeNodes:
    """Apply one random fault.

    One node is killed, paused or partitioned off until the other nodes have replaced it, or two or all nodes are killed
    at once.
    """

    def __init__(self, folder: Path, seed: str = "") -> None:
        self._chance = random.Random(seed)
        self._cluster = Cluster(data_dir=folder, **SETTINGS).open()
        self.address = self._cluster.bootstrap_servers
        self.killed = self.split = 0

    def kill(self, until_more: Callable[[], None]) -> None:
        chance = self._chance.random()
        if chance < 0.4:
            self.kill_one(until_more)
        elif chance < 0.55:
            self.stop_one(until_more)
        elif chance < 0.7:
            self.split_one()
        else:
            self.kill_many(2 if chance < 0.9 else 3)

    def kill_one(self, until_more: Callable[[], None]) -> None:
        node = self._chance.choice(self._cluster.nodes)
        self._cluster.kill(node)
        self.killed += 1
        until_more()
        self._cluster.start(node)

    def stop_one(self, until_more: Callable[[], None]) -> None:
        node = self._chance.choice(self._cluster.nodes)
        self._cluster.stop(node)
        until_more()
        self._cluster.start(node)

    def split_one(self) -> None:
        """Partition one node off.

        It continues to run and to serve its clients, while the other nodes elect a replacement.
        """
        node = self._chance.choice(self._cluster.nodes)
        self._cluster.partition_off(node)
        self.split += 1
        others = ",".join(place for each, place in self._cluster.addresses.items() if each != node)
        eventually(lambda: node not in listed_brokers(others))
        self._cluster.heal()
        self._cluster.start()

    def kill_many(self, count: int) -> None:
        """Kill so many nodes that no quorum remains."""
        nodes = self._chance.sample(self._cluster.nodes, count)
        self._cluster.kill(*nodes)
        self.killed += count
        self._cluster.start(*nodes)

    def close(self) -> None:
        self._cluster.close()


def listed_brokers(places: str) -> set[int]:
    """The brokers that a majority lists.

    A client that knows all of them may send a request to the partitioned one, which considers itself online.
    """
    with Admin(bootstrap_servers=places) as admin:
        return {each.node_id for each in admin.describe_cluster().nodes}
