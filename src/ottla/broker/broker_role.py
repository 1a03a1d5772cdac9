"""The broker role of a node: topics, partitions, groups and transactions, served to clients and other brokers.

Belongs to the loop of the node's `SocketServer`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.authentication.authentication import Authentication
from ottla.broker.authentication.listener_security import warn_of
from ottla.broker.authentication.passwords import NewUser
from ottla.broker.broker_requests import BrokerRequests
from ottla.broker.chores import Chores
from ottla.broker.disk import Disk
from ottla.broker.gate import Gate
from ottla.broker.handlers import spoken_versions
from ottla.broker.joined import join
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.gap_check import GapCheck
from ottla.broker.partitions.partitions import ensure_open
from ottla.broker.plain_way import PlainWay
from ottla.broker.requests.admission import affordable_connections
from ottla.broker.requests.request_table import Door
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.socket_server import BoundListeners, SocketServer
from ottla.errors import ConfigError, OttlaError
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.directory.privacy import is_open_to_others

if TYPE_CHECKING:
    from ottla.broker.controllers.local_metadata import LocalMetadata

log = logging.getLogger(__name__)


class BrokerRole:
    """A broker over a data directory that is open and locked."""

    def __init__(
        self,
        config: BrokerConfig,
        server: SocketServer,
        listeners: BoundListeners,
        directory: DataDirectory | DataDirectories,
        users: Sequence[NewUser],
        end: Callable[[], None],
        fail: Callable[[OttlaError], None],
        local: LocalMetadata | None,
    ) -> None:
        """`end` stops the node; so does `fail`, which states why. `local` is the metadata of the node's controller role."""
        self._given = config
        self._server = server
        self._listeners = listeners
        self._directory = directory
        self._fail = fail
        clock, timers, selector = server.clock, server.timers, server.selector
        self.disk = Disk(server.call_soon)
        apis = spoken_versions(joins=config.joins, shows_metrics=bool(config.metrics_listen))
        self.node = BrokerNode(
            config, directory, clock, timers, self.disk, apis, None if local is None else local.image
        )
        self._gap_check = GapCheck(directory, self.disk)
        around = selector, server.call_soon, end, fail, self._open_ports_in_time, self.disk, local
        self._joined = join(self.node, listeners.names, *around) if config.joins else None
        self.node.reached_at = listeners.addresses
        self.node.passwords.ensure(users)
        self._warn_of_open_directory()
        known = listeners.securities, self.node.passwords, self.node.tokens
        authentication = self.node.authentication = Authentication(config, *known, timers, clock, server.call_soon)
        self.gate = Gate(authentication, selector, server.memory, timers, clock, config.socket_request_max_bytes)
        hang_up, handler = server.connections.hang_up, server.handler
        self.plain_way = PlainWay(self.node, server.memory, selector.send, hang_up, handler.note_answer, handler)
        self.requests = BrokerRequests(self.node, self._joined, server.throttle, self.plain_way)
        delay_ms = self.node.connection_rates.delay_ms
        server.add_role(self, listeners, lambda name: Door(name, self.gate, self.requests, delay_ms))
        self.node.topics.on_configured(self._configure)
        self.node.topics.check_settings = authentication.check
        if not config.joins:
            listeners.open()
        warn_of({name: (listeners.securities[name], each.address[0]) for each, name in listeners.names.items()})

    def when_ready(self, tell: Callable[[], None]) -> None:
        """Have `tell` called once clients are served: at once, or when the controllers have unfenced the broker."""
        if self._joined is None:
            tell()
        else:
            self._joined.on_ready = tell

    def start(self) -> None:
        """Begin with what the broker does by itself."""
        if self._joined is not None:
            self._joined.on_serving = self._accept_connections
            self._joined.start()
        Chores(self.node, self.disk).begin()
        self._gap_check.begin(self.node.partitions.uncompacted())
        self.node.disk_watch.begin(self._fail)
        self.gate.watch(self._server.connections.hang_up)

    def leave(self) -> bool:
        """Begin a controlled shutdown, in any thread; False if there is nothing to hand over. `end` is called afterwards."""
        return self._joined is not None and self._joined.leave()

    # for the loop

    def patience(self, now: float) -> float | None:
        return None

    def receive(self, now: float) -> None:
        pass

    def go_on(self, now: float) -> None:
        self.node.waiting.run_due()

    # the end

    def close(self) -> None:
        """Refuse connections, and finish what is under way on the disk: responses that waited for it are sent."""
        if self._joined is not None:
            self._joined.close()
        self._listeners.close()
        for connection in self._server.connections.of_listeners(self._listeners.names.values()):
            self._server.selector.mute(connection.channel_id)
        self.node.waiting.close()
        self._server.handler.uncork()
        self.node.cleaning.stop()
        self._gap_check.stop()
        self.finish_disk_work()

    def finish_disk_work(self) -> None:
        """End the disk's threads, and answer the requests that wait for them."""
        self.gate.close()
        # Flushes complete Produce requests; the responses may still be sent.
        while self.disk.busy or self._server.has_calls:
            self.disk.close()
            self._server.run_due()

    def hang_up(self) -> None:
        """Close all connections of clients, and let go of the rest."""
        self._server.connections.leave_all(self._listeners.names.values())
        self._server.remove_role(self)

    def open_unchecked_logs(self) -> None:
        """Check the logs that a crash left and nothing has used since, so that this shutdown can be a clean one."""
        for partition in self.node.partitions.unchecked:
            ensure_open(partition)

    def release(self) -> None:
        """Close what is left when the directory is closed."""
        if self.node.access is not None:
            self.node.access.close()

    # connections

    def _configure(self, config: BrokerConfig) -> None:
        """Apply limits of connections that were changed. Connections beyond them stay open."""
        self._server.admission.allow(config.max_connections_per_ip)
        if self._joined is None or self._joined.serving:
            self._server.selector.allow(affordable_connections(config.max_connections))
        self.node.authentication.configure(config)

    def _accept_connections(self) -> None:
        """Accept connections that waited in the kernel's queue: before, the broker would have named no brokers and topics."""
        self._configure(self.node.config)

    def _open_ports_in_time(self) -> None:
        """Open the ports when the broker has caught up. Connections wait in the kernel's queue until it is unfenced, at once."""
        try:
            self._listeners.open()
        except ConfigError as error:
            self._fail(error)

    def _warn_of_open_directory(self) -> None:
        path = self._directory.path
        if self.node.passwords.all() and is_open_to_others(path):
            log.warning(
                "data directory %s is open to all users of this machine and contains SCRAM keys of users; restrict it, "
                "such as by chmod 700",
                path,
            )
