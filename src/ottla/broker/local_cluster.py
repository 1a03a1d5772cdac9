"""`ottla.Cluster`: brokers and controllers on this machine, for tests and to try what becomes of a cluster when a node dies.

    with Cluster(brokers=3) as cluster:
        producer = Producer(cluster.client_settings())
        cluster.kill(2)

Each node is a process of its own, a broker and (the first five at most) a voter. They end with the program, whatever way it ends.
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

from ottla.broker.embedded import CLOSE_SECONDS, QUICK
from ottla.broker.local_nodes import ensure_as_asked, first_place, format_nodes, hold, plan, read_nodes
from ottla.broker.local_split import Sides, places_of
from ottla.broker.process import BrokerProcess, uninterrupted
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import SystemClock
from ottla.config import unknown
from ottla.errors import ConfigError, IllegalStateError, OttlaError
from ottla.free_ports import HeldPorts
from ottla.storage.directory.data_directory import UnusableError
from ottla.storage.directory.privacy import make_private

MOST_BROKERS = 20
HAND_OVER_SECONDS = 10.0
"""How long one that is stopped alone may take to hand over what it leads."""
MEETING_SECONDS = 10.0
"""How long brokers that are ready may take to hear of each other."""
TOGETHER_SECONDS = 3.0
"""How long all may take that are stopped together: the last have no majority to hand over to."""
LOOK_SECONDS = 0.02
"""How often it is looked meanwhile how many have ended."""

log = logging.getLogger(__name__)


class Cluster:
    """So many brokers with their controllers.

    `data_dir` is where everything is kept, also for the next `Cluster` of that directory; without one it is in a temporary directory
    that goes at `close`. `listen` is `host:port` of the first broker, the others have the ports after it; without it, or with port 0, they are free ones. Other settings are Kafka's, as keywords, for all nodes: `num_partitions=3`. New topics have up to three copies.
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
        self._first = None if listen is None else first_place(listen, brokers)
        self._given = data_dir
        self._settings = {**QUICK, **settings}
        self._configs: dict[int, BrokerConfig] = {}
        self._processes: dict[int, BrokerProcess] = {}
        self._sides = Sides()
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
        """Start all nodes; when this returns each of them serves, and names all to clients. OttlaError says why one cannot."""
        if self._configs:
            raise IllegalStateError(f"the cluster is already running on {self.bootstrap_servers}")
        self._owner = os.getpid()
        atexit.register(self.close)
        try:
            self._configs = self._read(self._folder())
            self._start_all(self._configs)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop all nodes; may be called twice. What does not end in time is killed, which loses nothing that was acknowledged."""
        if self._owner != os.getpid():
            return  # a forked child has a copy of this object, and the processes are its parent's
        # Once most have ended there is nobody to hand over to, and the others need not try.
        self._end(list(self._processes.values()), TOGETHER_SECONDS, len(self._processes) // 2)
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
        """The numbers of all nodes, whether they run or not: from 1 on."""
        return tuple(self._configs)

    @property
    def addresses(self) -> dict[int, str]:
        """Where clients reach each broker, whether it runs or not: `host:port` by its number."""
        return {number: str(config.endpoints()[0]).rpartition("/")[2] for number, config in self._configs.items()}

    @property
    def running(self) -> tuple[int, ...]:
        """The numbers of those that run."""
        return tuple(number for number, process in sorted(self._processes.items()) if process.is_running)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, for clients."""
        self._ensure_open()
        return ",".join(self.addresses.values())

    def client_settings(self) -> dict[str, str]:
        """What a client has to be told to connect."""
        return {"bootstrap.servers": self.bootstrap_servers}

    def pid(self, node: int) -> int:
        """The process of a node that runs."""
        return self._running(node).pid

    def kill(self, *nodes: int) -> None:
        """End nodes as a power cut would (SIGKILL)."""
        for each in [self._running(node) for node in nodes]:
            each.kill()
        for node in nodes:
            del self._processes[node]

    def stop(self, *nodes: int) -> None:
        """Have nodes hand over what they lead, and end."""
        self._end([self._running(node) for node in nodes], HAND_OVER_SECONDS)
        for node in nodes:
            del self._processes[node]

    def start(self, *nodes: int) -> None:
        """Start nodes that were killed or stopped; when this returns they serve again."""
        self._ensure_open()
        if self._sides:
            raise IllegalStateError(
                "the network is split, and a node that starts may not find the others: heal() first"
            )
        for node in nodes:
            process = self._processes.get(self._known(node))
            if process is not None and process.is_running:
                raise IllegalStateError(f"node {node} is running already, as process {process.pid}")
        self._start_all(nodes)

    def partition_off(self, *nodes: int) -> None:
        """Cut nodes off from all others, as if a cable were pulled: they reach each other still, and clients reach everybody.

        Another call cuts further nodes off, on a side of their own; `heal` ends it.
        """
        self._sides.cut_off([self._known(node) for node in nodes])
        self._tell_sides()

    def heal(self) -> None:
        """Have all nodes reach each other again; they come back by themselves, and `start()` without a node waits for that."""
        if self._sides:
            self._sides.heal()
            self._tell_sides()

    def _tell_sides(self) -> None:
        for node in self.running:
            places = self._sides.apart_from(node, self._configs)
            if not self._processes[node].keep_apart(places, MEETING_SECONDS):
                raise OttlaError(
                    f"node {node} did not take within {MEETING_SECONDS:g} s whom it reaches: does it stand still?"
                )

    def _ensure_open(self) -> None:
        if not self._configs:
            raise IllegalStateError("the cluster is not running: use it in a with statement, or call open()")

    def _known(self, node: int) -> int:
        self._ensure_open()
        if node not in self._configs:
            raise ConfigError(unknown("node", str(node), map(str, self._configs)))
        return node

    def _running(self, node: int) -> BrokerProcess:
        process = self._processes.get(self._known(node))
        if process is None or not process.is_running:
            raise IllegalStateError(f"node {node} is not running: start({node}) starts it")
        return process

    def _end(self, processes: Sequence[BrokerProcess], seconds: float, left: int = 0) -> None:
        """Have them hand over within so many seconds, all but so many that may be left, and then end."""
        until = time.monotonic() + seconds
        for each in processes:
            each.ask_to_end()
        while len(running := [each for each in processes if each.is_running]) > left and time.monotonic() < until:
            running[0].has_ended(LOOK_SECONDS)
        for each in processes:
            each.let_go()
        for each in processes:
            each.close(CLOSE_SECONDS)

    def _start_all(self, nodes: Collection[int]) -> None:
        """Together: none is ready before most voters are. Of one that has ended by itself, what tied it to this process goes."""
        for node in nodes:
            if (ended := self._processes.pop(node, None)) is not None:
                ended.close(CLOSE_SECONDS)
        with uninterrupted():  # all that are started are known
            for node in nodes:
                self._processes[node] = BrokerProcess(self._configs[node], wait=False)
        starting = [self._processes[node] for node in nodes]
        with ThreadPoolExecutor(len(starting) or 1) as threads:
            try:
                waiting = [threads.submit(each.wait_until_ready) for each in starting]
                for done in as_completed(waiting):  # The first that fails may be why others do.
                    done.result()
            except (KeyboardInterrupt, SystemExit):  # nobody waits any more until they are ready
                for each in starting:
                    each.ask_to_end()
                raise
        self._introduce()

    def _introduce(self) -> None:
        """Wait until each that runs sends clients to all of them: a broker is let in before the others hear of it."""
        until = time.monotonic() + MEETING_SECONDS
        running = self.running
        for node in running:
            process = self._processes[node]
            if not process.has_met(running, max(until - time.monotonic(), 0)) and process.is_running:
                log.warning("node %d has not heard of all of %s within %g s", node, running, MEETING_SECONDS)

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

    def _read(self, folder: Path) -> dict[int, BrokerConfig]:
        found = read_nodes(folder, self._settings)
        hold((place for config in found.values() for place in places_of(config)), self._ports)
        if not found:
            format_nodes(folder, plan(self._brokers, self._ports, self._first), self._settings, SystemClock())
            found = read_nodes(folder, self._settings)
        ensure_as_asked(folder, found, self._brokers, self._first)
        return found
