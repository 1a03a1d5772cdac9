"""`ottla.Cluster`: brokers and controllers on this machine, for tests and experiments with failing nodes.

    with Cluster(brokers=3) as cluster:
        producer = Producer(cluster.client_settings())
        cluster.kill(2)

Each node is a process, with a broker and (the first five at most) a voter. They end with the program, however it ends.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ottla.broker.embedding.broker_process import BrokerProcess, block_interrupts
from ottla.broker.embedding.embedded_broker import CLOSE_SECONDS, QUICK
from ottla.broker.embedding.local_network_partition import NetworkSides, list_addresses
from ottla.broker.embedding.local_nodes import (
    check_requested,
    format_nodes,
    parse_first_address,
    plan_nodes,
    read_nodes,
    reserve_ports,
)
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import SystemClock
from ottla.config import unknown
from ottla.errors import ConfigError, IllegalStateError, OttlaError
from ottla.free_ports import HeldPorts
from ottla.storage.directory.data_directory import UnusableError
from ottla.storage.directory.privacy import make_private

MOST_BROKERS = 20
HAND_OVER_SECONDS = 10.0
"""The time limit for the controlled shutdown of a single node."""
MEETING_SECONDS = 10.0
"""The longest time until brokers that are ready have metadata of each other."""
TOGETHER_SECONDS = 3.0
"""The time limit for a shutdown of all nodes: the last ones have no majority, and cannot do a controlled one."""
LOOK_SECONDS = 0.02
"""The interval between two checks for nodes that have ended."""

log = logging.getLogger(__name__)


class Cluster:
    """A cluster of brokers with their controllers.

    `data_dir` is the directory of all data, which the next `Cluster` can open again; without it they are in a temporary
    directory that is deleted by `close`. `listen` is `host:port` of the first broker, and the others have the following
    ports; without it, or with port 0, they are free ones. Other settings are Kafka's, as keywords, for all nodes:
    `num_partitions=3`. New topics have up to three replicas.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        listen: str | None = None,
        **settings: Any,
    ) -> None:
        if not 1 <= brokers <= MOST_BROKERS:
            raise ConfigError(f"brokers = {brokers}: must be between 1 and {MOST_BROKERS}")
        if data_dir is not None and not os.fspath(data_dir):
            raise ConfigError("data_dir is empty: name a directory, or leave it out for a temporary one")
        self._brokers = brokers
        self._first = None if listen is None else parse_first_address(listen, brokers)
        self._given = data_dir
        self._settings = {**QUICK, **settings}
        self._configs: dict[int, BrokerConfig] = {}
        self._processes: dict[int, BrokerProcess] = {}
        self._sides = NetworkSides()
        self._ports = HeldPorts()
        self._temporary: str | None = None
        self._owner = os.getpid()

    def __repr__(self) -> str:
        return f"Cluster({', '.join(self.addresses.values()) or 'not running'})"

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> Self:
        """Start all nodes; each serves clients and has metadata of all when this returns.

        Raise OttlaError if one cannot start.
        """
        if self._configs:
            raise IllegalStateError(f"the cluster is already running on {self.bootstrap_servers}")
        self._owner = os.getpid()
        atexit.register(self.close)
        try:
            self._configs = self._read_configs(self._folder())
            self._start_all(self._configs)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop all nodes; may be called twice.

        A node that does not end in time is killed, which loses no acknowledged record.
        """
        if self._owner != os.getpid():
            return  # a forked child has a copy of this object, and the processes are its parent's
        # Once most nodes have ended there is no controller, and the others need no controlled shutdown.
        self._stop_processes(list(self._processes.values()), TOGETHER_SECONDS, len(self._processes) // 2)
        self._processes.clear()
        self._configs.clear()
        self._sides.heal()
        self._ports.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None
        atexit.unregister(self.close)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids of all nodes, whether they run or not: from 1 on."""
        return tuple(self._configs)

    @property
    def addresses(self) -> dict[int, str]:
        """Return the address of each broker, running or not: `host:port` by its number."""
        return {number: str(config.endpoints()[0]).rpartition("/")[2] for number, config in self._configs.items()}

    @property
    def running(self) -> tuple[int, ...]:
        """The ids of the nodes that run."""
        return tuple(number for number, process in sorted(self._processes.items()) if process.is_running)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, for clients."""
        self._ensure_open()
        return ",".join(self.addresses.values())

    def client_settings(self) -> dict[str, str]:
        """Return the settings of a client."""
        return {"bootstrap.servers": self.bootstrap_servers}

    def pid(self, node: int) -> int:
        """Return the process of a node that runs."""
        return self._find_process(node).pid

    def kill(self, *nodes: int) -> None:
        """Kill nodes (SIGKILL), as a power cut would."""
        for each in [self._find_process(node) for node in nodes]:
            each.kill()
        for node in nodes:
            del self._processes[node]

    def stop(self, *nodes: int) -> None:
        """Stop nodes by a controlled shutdown."""
        self._stop_processes([self._find_process(node) for node in nodes], HAND_OVER_SECONDS)
        for node in nodes:
            del self._processes[node]

    def start(self, *nodes: int) -> None:
        """Start nodes that were killed or stopped; when this returns they serve again."""
        self._ensure_open()
        if self._sides:
            raise IllegalStateError(
                "the network is partitioned, and a node that starts may not find the others: call heal() first"
            )
        for node in nodes:
            process = self._processes.get(self._check_node(node))
            if process is not None and process.is_running:
                raise IllegalStateError(f"node {node} is running already, as process {process.pid}")
        self._start_all(nodes)

    def partition_off(self, *nodes: int) -> None:
        """Partition nodes from all others. They reach each other still, and clients reach every node.

        Another call partitions further nodes, on a side of their own; `heal` ends it.
        """
        self._sides.cut_off([self._check_node(node) for node in nodes])
        self._apply_partition()

    def heal(self) -> None:
        """End the simulated partitions. Nodes recover by themselves; `start()` without a node waits for that."""
        if self._sides:
            self._sides.heal()
            self._apply_partition()

    def _apply_partition(self) -> None:
        for node in self.running:
            places = self._sides.apart_from(node, self._configs)
            if not self._processes[node].isolate(places, MEETING_SECONDS):
                raise OttlaError(
                    f"node {node} did not apply the network partition within {MEETING_SECONDS:g} s: check whether its process is stopped"
                )

    def _ensure_open(self) -> None:
        if not self._configs:
            raise IllegalStateError("the cluster is not running: use it in a with statement, or call open()")

    def _check_node(self, node: int) -> int:
        self._ensure_open()
        if node not in self._configs:
            raise ConfigError(unknown("node", str(node), map(str, self._configs)))
        return node

    def _find_process(self, node: int) -> BrokerProcess:
        process = self._processes.get(self._check_node(node))
        if process is None or not process.is_running:
            raise IllegalStateError(f"node {node} is not running: start({node}) starts it")
        return process

    def _stop_processes(self, processes: Sequence[BrokerProcess], seconds: float, left: int = 0) -> None:
        """Wait up to `seconds` for controlled shutdowns, until at most `left` nodes remain, and then end those."""
        until = time.monotonic() + seconds
        for each in processes:
            each.request_stop()
        while len(running := [each for each in processes if each.is_running]) > left and time.monotonic() < until:
            running[0].has_ended(LOOK_SECONDS)
        for each in processes:
            each.disown()
        for each in processes:
            each.close(CLOSE_SECONDS)

    def _start_all(self, nodes: Collection[int]) -> None:
        """Start nodes together: none is ready before most voters are. Close the pipes of those that had ended."""
        for node in nodes:
            if (ended := self._processes.pop(node, None)) is not None:
                ended.close(CLOSE_SECONDS)
        with block_interrupts():  # all that are started are known
            for node in nodes:
                self._processes[node] = BrokerProcess(self._configs[node], wait=False)
        starting = [self._processes[node] for node in nodes]
        with ThreadPoolExecutor(len(starting) or 1) as threads:
            try:
                waiting = [threads.submit(each.wait_until_ready) for each in starting]
                for done in as_completed(waiting):  # The first that fails may be why others do.
                    done.result()
            except (KeyboardInterrupt, SystemExit):  # the start was interrupted
                for each in starting:
                    each.request_stop()
                raise
        self._await_members()

    def _await_members(self) -> None:
        """Wait until each running node has metadata of all: a broker is registered before the others receive that."""
        until = time.monotonic() + MEETING_SECONDS
        running = self.running
        for node in running:
            process = self._processes[node]
            if not process.has_met(running, max(until - time.monotonic(), 0)) and process.is_running:
                log.warning(
                    "node %d has not received metadata of all nodes %s within %g s", node, running, MEETING_SECONDS
                )

    def _folder(self) -> Path:
        if self._given is not None:
            folder = Path(self._given).absolute()
            try:
                make_private(folder)
            except OSError as error:
                raise UnusableError(folder, error) from None
            return folder
        self._temporary = tempfile.mkdtemp(prefix="ottla-cluster-")
        return Path(self._temporary)

    def _read_configs(self, folder: Path) -> dict[int, BrokerConfig]:
        found = read_nodes(folder, self._settings)
        reserve_ports((place for config in found.values() for place in list_addresses(config)), self._ports)
        if not found:
            format_nodes(folder, plan_nodes(self._brokers, self._ports, self._first), self._settings, SystemClock())
            found = read_nodes(folder, self._settings)
        check_requested(folder, found, self._brokers, self._first)
        return found
