"""A node: the broker role, the controller role, or both, over one data directory and in one event loop.

process.roles=broker             SocketServer ──► BrokerRole
process.roles=controller         SocketServer ──► ControllerRole
process.roles=broker,controller  SocketServer ──► BrokerRole, ControllerRole
no process.roles                 SocketServer ──► BrokerRole, ControllerRole: the only voter, without a listener for controllers
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ottla.broker.metadata.metadata_log import METADATA_PARTITION
from ottla.broker.metadata.node_errors import RegistrationLostError
from ottla.broker.network_server import request_log
from ottla.broker.network_server.admission import affordable_connections
from ottla.broker.network_server.socket_server import SocketServer
from ottla.broker.security.authorization import open_audit_log
from ottla.broker.security.bound_listeners import BoundListeners
from ottla.broker.security.scram_credentials import NewUser, read_users
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.roles import controller_half
from ottla.clock import Clock, SystemClock
from ottla.errors import KafkaError, OttlaError
from ottla.network.listener import ConnectionLimit
from ottla.storage.directory.data_directories import DataDirectories, open_directories
from ottla.storage.directory.data_directory import DataDirectory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.broker_role import BrokerRole
    from ottla.broker.controller_role import ControllerRole
    from ottla.broker.network_server.request_counts import RequestCounts
    from ottla.broker.network_server.request_latencies import Latencies
    from ottla.broker.node import BrokerNode
    from ottla.storage.log import Log

log = logging.getLogger(__name__)


class Server:
    """One node, in the thread that calls `run`."""

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        """Bind the ports, lock the directory and read what is in it. OttlaError states why the node cannot start."""
        self.config = config
        self.broker: BrokerRole | None = None
        self.controller: ControllerRole | None = None
        self._failure: OttlaError | None = None
        self._has_started = self._is_ending = self._is_registration_lost = self._has_broker_ended = False
        self._temporary = ""
        self._lent_log: Log | None = None
        # Connections of clients are accepted when the broker is unfenced.
        most = affordable_connections(config.max_connections) if config.is_controller else 0
        self._sockets = sockets = SocketServer(config, clock or SystemClock(), most)
        self.call_soon, self.handler, self.connections = sockets.call_soon, sockets.handler, sockets.connections
        with ExitStack() as undo:
            undo.callback(sockets.selector.close_all)
            self._end_request_log = request_log.open_log(config.request_log)
            undo.callback(self._end_request_log)
            # The ports first: without them nothing in the directory is touched.
            self._listeners = BoundListeners(sockets, config)
            if config.has_both_roles:
                # Connections of clients do not count towards the limit of the controller's listeners.
                half = controller_half(config)
                limit = ConnectionLimit(affordable_connections(config.max_connections))
                listeners = BoundListeners(sockets, half, limit)
            self._audit = open_audit_log(config)
            if self._audit is not None:
                undo.callback(self._audit.close)
            users = read_users(config.add_scram.value) if config.add_scram is not None else ()
            self._directory = self._open_directory(undo)
            if config.is_controller:
                self.controller = self._make_controller(config, self._listeners)
            elif config.has_both_roles or config.is_alone:
                self.controller = self._make_controller(*(half, listeners) if config.has_both_roles else (config, None))
                self._lent_log = self._directory.main.lend_log(METADATA_PARTITION)
            if not config.is_controller:
                self.broker = self._make_broker(users)
            undo.pop_all()

    def _open_directory(self, undo: ExitStack) -> DataDirectory | DataDirectories:
        config = self.config
        directory: DataDirectory | DataDirectories
        if config.is_controller:
            directory = DataDirectory.open(config.metadata_directory, node_id=config.node_id, formatted=True)
        else:
            if not config.log_dirs:
                self._temporary = tempfile.mkdtemp(prefix="ottla-")
                undo.callback(self._remove_temporary)
            where = config.directories or (self._temporary,)
            main = config.metadata_directory if config.log_dirs else ""
            directory = open_directories(where, node_id=config.node_id, formatted=config.joins_cluster, main=main)
        undo.callback(lambda: directory.close(clean=False))
        return directory

    def _make_broker(self, users: Sequence[NewUser]) -> BrokerRole:
        from ottla.broker.broker_role import BrokerRole  # a controller does not load it

        local = None if self.controller is None else self.controller.local_metadata()
        around = self._stop_roles, self._fail, local, self._audit
        return BrokerRole(self.config, self._sockets, self._listeners, self._directory, users, *around)

    def _make_controller(self, config: BrokerConfig, listeners: BoundListeners | None) -> ControllerRole:
        from ottla.broker.controller_role import ControllerRole  # a broker does not load it

        return ControllerRole(config, self._sockets, listeners, self._directory.main, self._fail, self._audit)

    @property
    def node(self) -> BrokerNode:
        """The state of the broker role."""
        assert self.broker is not None
        return self.broker.node

    @property
    def bootstrap_servers(self) -> str:
        """An address for clients on this machine: that of the first listener."""
        return next(iter(self.addresses.values()))

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each listener, by its name."""
        return self._listeners.addresses

    @property
    def cluster_id(self) -> str:
        """The id of the cluster that the directories belong to."""
        return self._directory.cluster_id

    def certificate_expiries(self) -> dict[str, float]:
        """Return when the certificate of each listener with TLS expires, in seconds since 1970."""
        found = {name: each.certificate_expiry for name, each in self._listeners.securities.items()}
        return {name: expiry for name, expiry in found.items() if expiry is not None}

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once requests are served.

        Connections to a controller wait in the kernel's queue before `run`.
        """
        if self.broker is None:
            callback()
        else:
            self.broker.when_ready(callback)

    def measure(self, counts: RequestCounts, latencies: Latencies) -> None:
        """Count and time requests from now on."""
        self.handler.counts, self.handler.latencies = counts, latencies
        if self.broker is not None:
            self.broker.fast_path.counts, self.broker.fast_path.latencies = counts, latencies

    def isolate(self, places: Iterable[tuple[str, int]]) -> None:
        """Drop all traffic with the nodes at these addresses, as in a network partition; restore it to all others."""
        apart = list(places)
        of_broker = None if self.broker is None else self.broker.node.split
        of_controller = None if self.controller is None else self.controller.network_partition
        for split in (of_broker, of_controller):
            if split is not None:
                split.isolate(apart)

    def disown(self) -> None:
        """In a forked child: close the copies of the port, the connections and the directory. The parent keeps them."""
        self._sockets.selector.disown()
        self._directory.close(clean=False)

    def stop(self) -> None:
        """Stop `run`; from any thread, or from a signal handler. A broker of a cluster does a controlled shutdown."""
        broker = None if self._is_registration_lost else self.broker
        if broker is None or not broker.leave():
            self._stop_roles()

    def crash(self) -> None:
        """For tests, in the loop: end like a killed process. No response is sent any more, and the directory stays as it is."""
        for channel_id in self.connections.by_channel:
            self._sockets.selector.close(channel_id)
        self.connections.clear()
        self._failure = OttlaError("it was crashed on purpose")
        self._stop_roles()

    def start(self) -> None:
        """Start the roles, in the thread that calls `turn` or `run`."""
        if self._has_started:
            return
        self._has_started = True
        if self.controller is not None:
            self.controller.start()
        if self.broker is not None:
            self.broker.start()
        self._sockets.start()

    def start_serving(self) -> None:
        """Start the only node of a cluster, and return when clients are served: it waits for no other node.

        OttlaError states why it cannot serve; it is closed then.
        """
        assert self.config.is_alone
        try:
            self.start()
            while not (self._is_ending or self.broker is None or self.broker.is_serving):
                self.turn()
        except BaseException:
            self.close()
            raise
        if self._is_ending:
            self.close()
        if self._failure is not None:
            raise self._failure

    def turn(self) -> None:
        """Wait until something happens, and handle it."""
        if self._is_registration_lost and not self._has_broker_ended:
            self._stop_broker()
        try:
            self._sockets.turn()
        except MemoryError:
            log.exception("the process is out of memory; the node continues")

    def run(self) -> None:
        """Serve until `stop`, then answer requests under way, close the logs and unlock the directory.

        OttlaError if the node had to stop by itself.
        """
        try:
            self.start()
            while not self._is_ending:
                self.turn()
        finally:
            self.close()
        if self._failure is not None:
            raise self._failure

    def _stop_roles(self) -> None:
        self._is_ending = True
        self._sockets.selector.wakeup()

    def _fail(self, error: OttlaError) -> None:
        """Stop, since nothing can be served any more. Later failures follow from the first one."""
        if isinstance(error, RegistrationLostError) and self.controller is not None:
            log.critical("%s; the controller of the node continues", error)
            self._is_registration_lost = True
            self._sockets.selector.wakeup()
            return
        if self._failure is None:
            log.critical("%s", error)
            self._failure = error
        self._stop_roles()

    def _stop_broker(self) -> None:
        """End the broker role; the controller role keeps running."""
        assert self.broker is not None
        self._has_broker_ended = True
        self.broker.close()
        self.broker.disconnect_clients()

    def close(self) -> None:
        """Answer requests under way, close the logs and unlock the directory. `run` calls it at its end."""
        shutdown = self._sockets.shutdown
        try:
            if self.controller is not None:
                if self._failure is None:
                    self.controller.resign()
                self.controller.close()
            shutdown.has_started = True
            if self.broker is not None and self._has_broker_ended:
                self.broker.finish_disk_work()
            elif self.broker is not None:
                self.broker.close()
                shutdown.send_the_rest()
                self.broker.finish_disk_work()
                shutdown.send_last_responses()
        finally:
            self._sockets.close()
            self._close_directory()
            self._remove_temporary()
            self._end_request_log()
            if self._audit is not None:
                self._audit.close()

    def _close_directory(self) -> None:
        # A temporary directory is not worth the wait for the disk.
        clean = not self._temporary and self._failure is None
        try:
            if self._lent_log is not None:
                self._lent_log.close(sync=clean)  # what was appended is on the disk already
            if self.broker is not None and clean:
                self.broker.open_unchecked_logs()
            self._directory.close(clean=clean)
        except KafkaError as error:
            log.error("the shutdown is not clean, so the next start checks all logs: %s", error)

    def _remove_temporary(self) -> None:
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
