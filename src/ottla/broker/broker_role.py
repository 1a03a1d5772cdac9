"""The broker role of a node: topics, partitions, groups and transactions, served to clients and other brokers.

Belongs to the loop of the node's `SocketServer`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.apis.broker_requests import BrokerRequests
from ottla.broker.apis.fast_path import FastPath
from ottla.broker.apis.forwarding import Forwarding
from ottla.broker.apis.handlers import list_versions
from ottla.broker.event_loop.disk import Disk
from ottla.broker.network_server.admission import affordable_connections
from ottla.broker.network_server.request_table import ListenerContext
from ottla.broker.network_server.socket_server import SocketServer
from ottla.broker.node import BrokerNode, open_metadata_copy
from ottla.broker.periodic_tasks import PeriodicTasks
from ottla.broker.registration.controller_channel import ChannelRequest
from ottla.broker.registration.membership import Membership, build_listeners
from ottla.broker.replica_manager.offset_gap_check import OffsetGapCheck
from ottla.broker.replica_manager.partitions import ensure_open
from ottla.broker.security.authentication_gate import AuthenticationGate
from ottla.broker.security.bound_listeners import BoundListeners
from ottla.broker.security.listener_security import warn_of_open_listeners
from ottla.broker.security.scram_credentials import NewUser
from ottla.broker.settings.config import BrokerConfig
from ottla.errors import ConfigError, OttlaError
from ottla.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsResponse
from ottla.protocol.schema import Message
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.directory.privacy import is_open_to_others

if TYPE_CHECKING:
    from ottla.broker.registration.local_metadata import LocalMetadata
    from ottla.broker.security.audit_log import AuditLog

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
        audit: AuditLog | None,
    ) -> None:
        """`end` stops the node; so does `fail`, which states why. `local` is the metadata of the node's controller role.

        `audit` is the log of authorization decisions, if there is one. `users` are created if they have no password.
        """
        self._given = config
        self._server = server
        self._listeners = listeners
        self._directory = directory
        self._end = end
        self._fail = fail
        clock, timers, selector = server.clock, server.timers, server.selector
        self.disk = Disk(server.call_soon)
        apis = list_versions(shows_metrics=bool(config.metrics_listen))
        image = open_metadata_copy(config, directory, clock, self.disk) if local is None else local.image
        registered = build_listeners(config, listeners.bound)
        in_loop = selector, timers, clock, server.call_soon, self.disk.submit
        self._membership = Membership(config, directory, image, registered, *in_loop, local, self)
        around = server, listeners, self.disk
        self.node = BrokerNode(config, directory, *around, apis, image, self._membership, audit)
        self._gap_check = OffsetGapCheck(directory, self.disk)
        self._users = users
        self._chores = PeriodicTasks(self.node, self.disk)
        self._warn_of_open_directory()
        self.gate = AuthenticationGate(
            self.node.authentication, selector, server.memory, timers, clock, config.socket_request_max_bytes
        )
        hang_up, handler = server.connections.disconnect, server.handler
        self.fast_path = FastPath(self.node, server.memory, selector.send, hang_up, handler.queue_response, handler)
        forwarding = Forwarding(self.node, self._membership.channel)
        self.requests = BrokerRequests(self.node, forwarding, server.throttle, self.fast_path)
        delay_ms = self.node.connection_rates.delay_ms
        server.add_role(self, listeners.names, lambda name: ListenerContext(name, self.gate, self.requests, delay_ms))
        self.node.topics.on_configured(self._configure)
        warn_of_open_listeners(
            {name: (listeners.securities[name], each.address[0]) for each, name in listeners.names.items()}
        )

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once clients are served: when the active controller has unfenced the broker."""
        self._membership.when_ready(callback)

    @property
    def is_serving(self) -> bool:
        """True if clients are served."""
        return self._membership.is_serving

    def start(self) -> None:
        """Start periodic tasks, and join the cluster."""
        self._membership.start()
        self._create_users()
        self._chores.start()
        self.node.disk_watch.start(self._fail)
        self.gate.start_timer(self._server.connections.disconnect)

    def leave(self) -> bool:
        """Start a controlled shutdown, in any thread. False if there is no other broker to lead the partitions.

        `end` is called afterwards.
        """
        return self._membership.leave()

    # for the loop

    def time_until_next(self, now: float) -> float | None:
        return None

    def receive(self, now: float) -> None:
        pass

    def continue_work(self, now: float) -> None:
        self.node.waiting.run_due()

    # the end

    def close(self) -> None:
        """Refuse connections, and finish disk work: responses that waited for it are sent."""
        if self._membership.has_started:
            self.node.stop_replication()
            self._membership.close()
        self._listeners.close()
        for connection in self._server.connections.list_of_listeners(self._listeners.names.values()):
            self._server.selector.mute(connection.channel_id)
        self.node.waiting.close()
        self._server.handler.flush_channels()
        self.node.cleaning.stop()
        self._gap_check.stop()
        self.finish_disk_work()

    def finish_disk_work(self) -> None:
        """Stop the disk threads, and answer the requests that wait for them."""
        self.gate.close()
        # Flushes complete Produce requests; the responses may still be sent.
        while self.disk.busy or self._server.has_calls:
            self.disk.close()
            self._server.run_due()

    def disconnect_clients(self) -> None:
        """Close all connections of clients, and release the rest."""
        self._server.connections.close_listeners(self._listeners.names.values())
        self._server.remove_role(self)

    def open_unchecked_logs(self) -> None:
        """Recover the logs that were not opened since a crash, so that this shutdown is a clean one."""
        for partition in self.node.partitions.list_unrecovered:
            ensure_open(partition)

    # the membership

    def apply_metadata(self, records: list[Message] | None) -> None:
        """Apply records of the metadata that were replayed; None if a snapshot has replaced the image."""
        self.node.apply_metadata(records)

    def start_replicas(self) -> None:
        """Open the ports, and start what needs the partitions, once the broker has caught up with the metadata.

        Connections wait in the kernel's queue until the broker is unfenced, which follows at once.
        """
        self.node.start_replicas()
        self._chores.open_unchecked_logs()
        self._gap_check.start(self.node.partitions.list_uncompacted())
        try:
            self._listeners.open()
        except ConfigError as error:
            self._fail(error)

    def accept_clients(self) -> None:
        """Accept the connections in the kernel's queue.

        Accepted earlier, clients would receive metadata without brokers and topics.
        """
        self._configure(self.node.config)

    def stop(self, error: OttlaError | None) -> None:
        """Stop the node, after a controlled shutdown or because of an error."""
        if error is None:
            self._end()
        else:
            self._fail(error)

    # connections

    def _configure(self, config: BrokerConfig) -> None:
        """Apply changed limits of connections. Connections beyond them stay open."""
        self._server.admission.set_limits(config.max_connections_per_ip)
        if self._membership.is_serving:
            self._server.selector.set_max_accepted(affordable_connections(config.max_connections))
        self.node.authentication.configure(config)

    def _create_users(self) -> None:
        """Create the users of `add.scram` that are missing."""
        request = self.node.passwords.build_missing(self._users)
        if request is not None:
            answer = AlterUserScramCredentialsResponse
            self._membership.channel.send_request(ChannelRequest(request, 0, answer, self._check_users))

    def _check_users(self, response: AlterUserScramCredentialsResponse | None) -> None:
        faults = ["no controller answers"] if response is None else [each.error_message for each in response.results]
        if any(faults):
            self._fail(ConfigError(f"add.scram: {next(filter(None, faults))}"))

    def _warn_of_open_directory(self) -> None:
        path = self._directory.path
        if (self._users or self.node.passwords.all()) and is_open_to_others(path):
            log.warning(
                "data directory %s is open to all users of this machine and contains SCRAM keys of users; restrict it, "
                "such as by chmod 700",
                path,
            )
