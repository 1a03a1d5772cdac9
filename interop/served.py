"""What a client works with in a count of kills: our broker alone, or three nodes of ours of which one or two die at a time."""

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
    """Who answers."""

    address: str

    def kill(self, until_more: Callable[[], None]) -> None:
        """Kill what there is, or a part of it, and start it again; `until_more` returns once clients have gone on."""

    def close(self) -> None:
        """End it."""


class OneBroker:
    """Killed and started on its data."""

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
    """By chance one is killed and away until the others have gone on, or stopped so, or cut off until they have given it up; or two are killed at once, or all."""

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
        """It goes on as it was, and answers its clients, while the others put somebody else in its place."""
        node = self._chance.choice(self._cluster.nodes)
        self._cluster.partition_off(node)
        self.split += 1
        others = ",".join(place for each, place in self._cluster.addresses.items() if each != node)
        eventually(lambda: node not in named_by(others))
        self._cluster.heal()
        self._cluster.start()

    def kill_many(self, count: int) -> None:
        """So many that nobody can decide anything."""
        nodes = self._chance.sample(self._cluster.nodes, count)
        self._cluster.kill(*nodes)
        self.killed += count
        self._cluster.start(*nodes)

    def close(self) -> None:
        self._cluster.close()


def named_by(places: str) -> set[int]:
    """The brokers of which those tell; a client that knows all might ask the one that is cut off, which takes itself for there."""
    with Admin(bootstrap_servers=places) as admin:
        return {each.node_id for each in admin.describe_cluster().nodes}
