"""`ottla.Broker`: a broker for the program that needs one.

    with Broker() as broker:
        producer = Producer(bootstrap_servers=broker.bootstrap_servers)

It runs in a thread of this process, or with `process=True` in a process of its own, which then has an interpreter lock
of its own too. Either way it ends with the program.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ottla.broker.settings.config import BrokerConfig, read_config
from ottla.errors import ConfigError, IllegalStateError, OttlaError
from ottla.trace import CAPACITY, EventStream, Trace

if TYPE_CHECKING:
    from ottla.broker.process import BrokerProcess

log = logging.getLogger(__name__)
CLOSE_SECONDS = 30.0
QUICK = {
    "group_initial_rebalance_delay_ms": 0,  # nobody else is on the way
    "group_consumer_heartbeat_interval_ms": 500,
    "group_consumer_min_heartbeat_interval_ms": 1,
    "group_consumer_min_session_timeout_ms": 1,
}
"""What is quicker than in Kafka for a broker inside a program, where nobody wants to wait."""


class Broker:
    """A Kafka-compatible broker.

    `data_dir` is where topics are kept; without one they are in a temporary directory that goes at `close`. `listen` is
    `host:port`, port 0 for a free one, or several with commas between: `A://127.0.0.1:0,B://[::1]:0`. Other settings are Kafka's, as keywords: `num_partitions=3`.

    Safe as a fixture: `with Broker() as broker: yield broker`.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        listen: str = "127.0.0.1:0",
        process: bool = False,
        **settings: Any,
    ) -> None:
        if data_dir is not None:
            settings["log_dirs"] = directory_named(data_dir)
        if not {"listeners"} & settings.keys():
            settings["listeners"] = listen
        for name, value in QUICK.items():
            settings.setdefault(name, value)
        self.config: BrokerConfig = read_config(settings)
        self._in_process = process
        self._running: InThread | BrokerProcess | None = None
        self._owner = os.getpid()

    def __repr__(self) -> str:
        where = ", ".join(self._running.addresses.values()) if self._running else "not running"
        return f"Broker({where})"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, `host:port`; with several listeners that of the first."""
        return next(iter(self.addresses.values()))

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each listener, by its name."""
        if self._running is None:
            raise IllegalStateError("the broker is not running: use it in a with statement, or call start()")
        return self._running.addresses

    @property
    def pid(self) -> int:
        """The process it runs in: this one, or with `process=True` its own."""
        return self._running.pid if self._running is not None else os.getpid()

    def trace(self, capacity: int = CAPACITY) -> Trace:
        """What happens in consumer groups from now on, typed as in `ottla.coordination.groups.classic.notes`.

        IllegalStateError for a broker in a process of its own: its log tells the same.
        """
        if not isinstance(self._running, InThread):
            raise IllegalStateError("trace() needs a running broker in this process: Broker(), without process=True")
        return self._running.groups.trace(capacity)

    def start(self) -> Self:
        """Start it; when this returns it serves. OttlaError says why it cannot, such as a port that is taken."""
        if self._running is not None:
            raise IllegalStateError(f"the broker is already running on {self.bootstrap_servers}")
        if self._in_process:
            from ottla.broker.process import BrokerProcess

            self._running = BrokerProcess(self.config)
        else:
            self._running = InThread(self.config)
        self._owner = os.getpid()
        atexit.register(self.close)
        return self

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Shut it down, within `timeout` seconds; may be called twice, and then started again."""
        running, self._running = self._running, None
        # A forked child has a copy of this object, but the broker is its parent's.
        if running is not None and self._owner == os.getpid():
            running.close(timeout)
            atexit.unregister(self.close)


def directory_named(data_dir: str | os.PathLike[str]) -> str:
    """The path in full; an empty name is more likely a variable nobody set than this very directory."""
    if not os.fspath(data_dir):
        raise ConfigError("data_dir is empty: name a directory, or leave it out for a temporary one")
    return str(Path(data_dir).absolute())


class InThread:
    """A broker in a thread of this process."""

    def __init__(self, config: BrokerConfig) -> None:
        from ottla.broker.server import Server
        from ottla.compiled import warn_if_uncompiled

        self._server = Server(config)
        self.groups = EventStream()
        self._server.node.groups.listeners.append(self.groups.tell)
        RUNNING.add(self)
        warn_if_uncompiled()
        self.bootstrap_servers = self._server.bootstrap_servers
        self.addresses = self._server.addresses
        self.pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name=f"ottla-{self.bootstrap_servers}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._server.run()
        except OttlaError:
            pass  # as the log says; clients find nobody there

    def disown(self) -> None:
        """In a forked child, which has no such thread: let go of what is the parent's."""
        self._server.disown()

    def close(self, timeout: float) -> None:
        """Stop the loop and wait for it."""
        RUNNING.discard(self)
        self._server.stop()
        self._thread.join(timeout)
        if self._thread.is_alive():
            log.warning("the broker on %s is still closing its logs after %g s", self.bootstrap_servers, timeout)


RUNNING: set[InThread] = set()


def disown_all() -> None:
    """A forked child keeps no port open and no directory locked when its parent has long closed them."""
    for running in RUNNING:
        running.disown()
    RUNNING.clear()


os.register_at_fork(after_in_child=disown_all)
