"""The connections of a node: accept them, find them by the id of their channel, and close them.

Requests are handled in `request_handler.py`. Code that closes a channel also abandons its connection, so that nothing
waits for a client that has disconnected.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable

from ottla.broker.network_server.admission import ConnectionLimits, describe_remedy
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.request_parsing import plain_address
from ottla.broker.network_server.request_table import ListenerContext
from ottla.broker.network_server.throttle import Throttle
from ottla.network.listener import Listener
from ottla.network.memory_budget import MemoryBudget
from ottla.network.refusal import LEFT_BEFORE_HANDSHAKE
from ottla.network.selector import Selector
from ottla.storage.files.open_files import OPEN_FILES

log = logging.getLogger(__name__)

SILENT_SECONDS = 5.0
"""The time without a request after which a connection may be closed if others wait for its place."""
CLOSED_AT_ONCE = 64
ORDINARY_ENDS = (
    "the peer reset the connection",
    "the peer closed the connection",
    "connection timed out",
    LEFT_BEFORE_HANDSHAKE,
)


class Connections:
    """The connections that clients and other nodes made to this one."""

    def __init__(
        self,
        by_channel: dict[Hashable, Connection],
        selector: Selector,
        memory: MemoryBudget,
        admission: ConnectionLimits,
        throttle: Throttle,
    ) -> None:
        self.by_channel = by_channel
        self._selector = selector
        self._memory = memory
        self._admission = admission
        self._doors: dict[Listener, ListenerContext] = {}
        self._throttle = throttle
        self._full = False

    def add_listener(self, listener: Listener, door: ListenerContext) -> None:
        """Set the treatment of the connections of a listener."""
        self._doors[listener] = door

    def accept(self, channel_id: int, now: float) -> None:
        """Register an accepted connection, unless its address has reached its limit."""
        selector = self._selector
        peer, local = plain_address(selector.peer(channel_id)), plain_address(selector.local(channel_id))
        listener = selector.listener(channel_id)
        assert listener is not None
        door = self._doors[listener]
        connection = Connection(channel_id, peer, local, now, door.listener)
        connection.door = door
        if self._admission.admit(peer[0]):
            self.by_channel[channel_id] = connection
            OPEN_FILES.count_connections(1)
            self._throttle.delay_connection(connection, door.delay_ms(peer[0], now), self.close_connection)
            door.gate.accept_connection(connection, now, self.disconnect)
        else:
            most = self._admission.find_limit(peer[0])
            log.info(
                "closing the connection from %s: its address has reached its limit of %d connections", connection, most
            )
            selector.close(channel_id)
        if selector.is_full and not self._full:
            log.warning("the limit of connections is reached, and new connections wait: %s", describe_remedy())
        self._full = selector.is_full

    def disconnect(self, connection: Connection, reason: str) -> None:
        """Close a connection that broke the protocol or failed, and log the reason."""
        connection.door.gate.log_bad_end(connection, f"closing the connection from {connection}: {reason}")
        self._selector.uncork(connection.channel_id)  # with the responses to earlier requests
        self.close_connection(connection)

    def close_connection(self, connection: Connection) -> None:
        """Close a connection without a log line."""
        self._selector.close(connection.channel_id)
        self._abandon(connection)

    def list_of_listeners(self, names: Iterable[str]) -> list[Connection]:
        """Return the connections that were accepted by these listeners."""
        wanted = set(names)
        return [each for each in self.by_channel.values() if each.listener in wanted]

    def close_listeners(self, names: Iterable[str]) -> None:
        """Close the connections of these listeners."""
        for connection in self.list_of_listeners(names):
            self.close_connection(connection)

    def close_idle(self, now: float, limit_seconds: float) -> None:
        """Close connections without a request under way that were idle for more than the limit (`connections.max.idle.ms`)."""
        for connection in list(self.by_channel.values()):
            if connection.call is None and now - connection.last_active > limit_seconds:
                log.info("closing the connection from %s: idle for %.0f s", connection, now - connection.last_active)
                self.close_connection(connection)

    def close_silent(self, now: float) -> None:
        """Close connections that have not sent a request in time, if new connections wait for their places."""
        if not self._selector.is_full:
            return
        silent = [
            each
            for each in self.by_channel.values()
            if is_unknown(each) and each.call is None and now - each.last_active >= SILENT_SECONDS
        ]
        for connection in sorted(silent, key=lambda each: each.last_active)[:CLOSED_AT_ONCE]:
            self.disconnect(connection, "it has sent no request, and the limit of connections is reached")

    def clear(self) -> None:
        """Forget all connections; they are closed with the selector."""
        OPEN_FILES.count_connections(-len(self.by_channel))
        self.by_channel.clear()

    def handle_closed(self, connection: Connection, reason: str) -> None:
        """Forget a connection that was closed by its peer or failed."""
        if reason.startswith(ORDINARY_ENDS):
            log.info("the connection from %s ended: %s", connection, reason)
        elif reason:
            connection.door.gate.log_bad_end(connection, f"the connection from {connection} ended: {reason}")
        self._abandon(connection)

    def _abandon(self, connection: Connection) -> None:
        if self.by_channel.pop(connection.channel_id, None) is None:
            return
        OPEN_FILES.count_connections(-1)
        self._admission.release(connection.peer[0])
        connection.door.gate.remove_connection(connection)
        self._memory.handed_out -= sum(len(frame) for frame, _ in connection.pending)
        connection.pending.clear()
        for call in connection.abandon():
            self._memory.handed_out -= call.size if call.parts is None else 0
            # A member that waits in a join, or a fetch that waits for records, does not wait any longer.
            call.abandon()
        connection.door.table.handle_disconnect(connection)


def is_unknown(connection: Connection) -> bool:
    """Return True if a connection has not authenticated where it must, or has sent no request."""
    login = connection.login
    if login is not None:
        return not login.is_done
    return connection.last_active == connection.since
