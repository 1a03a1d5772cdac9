"""The connections of a node: accepted, known by the id of their channel, and closed.

Requests are handled in `request_handler.py`. The one rule: code that closes a channel also abandons its connection, so
that nothing waits for a client that has disconnected.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable

from ottla.broker.authentication.login import LoginState
from ottla.broker.requests.admission import Admission, what_to_raise
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.reading import plain_address
from ottla.broker.requests.request_table import Door
from ottla.broker.throttle import Throttle
from ottla.network.listener import Listener
from ottla.network.memory_budget import MemoryBudget
from ottla.network.selector import Selector
from ottla.storage.files.open_files import OPEN_FILES

log = logging.getLogger(__name__)

SILENT_SECONDS = 5.0
"""How long a connection may keep a place without a request while others wait for one."""
CLOSED_AT_ONCE = 64
ORDINARY_ENDS = ("the peer reset the connection", "the peer closed the connection", "connection timed out")


class Connections:
    """The connections that clients and other nodes made to this one."""

    def __init__(
        self,
        by_channel: dict[Hashable, Connection],
        selector: Selector,
        memory: MemoryBudget,
        admission: Admission,
        throttle: Throttle,
    ) -> None:
        self.by_channel = by_channel
        self._selector = selector
        self._memory = memory
        self._admission = admission
        self._doors: dict[Listener, Door] = {}
        self._throttle = throttle
        self._full = False

    def add_door(self, listener: Listener, door: Door) -> None:
        """Treat connections of a listener in this way, from its first one on."""
        self._doors[listener] = door

    def welcome(self, channel_id: int, now: float) -> None:
        """Take in a connection that was accepted, if its address may have one more."""
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
            self._throttle.welcome(connection, door.delay_ms(peer[0], now), self.leave)
            door.gate.welcome(connection, now, self.hang_up)
        else:
            most = self._admission.most(peer[0])
            log.info("closing the connection from %s: its address has %d, as many as it may", connection, most)
            selector.close(channel_id)
        if selector.full and not self._full:
            log.warning("newcomers wait: there are as many connections as may be; for more, %s", what_to_raise())
        self._full = selector.full

    def hang_up(self, connection: Connection, reason: str) -> None:
        """Close a connection that broke the protocol or failed, and log the reason."""
        connection.door.gate.tell_bad_end(connection, f"closing the connection from {connection}: {reason}")
        self._selector.uncork(connection.channel_id)  # with the responses to earlier requests
        self.leave(connection)

    def leave(self, connection: Connection) -> None:
        """Close a connection without a log line."""
        self._selector.close(connection.channel_id)
        self._abandon(connection)

    def of_listeners(self, names: Iterable[str]) -> list[Connection]:
        """Return the connections that were accepted by these listeners."""
        wanted = set(names)
        return [each for each in self.by_channel.values() if each.listener in wanted]

    def leave_all(self, names: Iterable[str]) -> None:
        """Close the connections of these listeners."""
        for connection in self.of_listeners(names):
            self.leave(connection)

    def close_silent(self, now: float) -> None:
        """Make room for newcomers that wait: close connections that have taken a place and sent no request for it."""
        if not self._selector.full:
            return
        silent = [
            each
            for each in self.by_channel.values()
            if is_unknown(each) and each.call is None and now - each.last_active >= SILENT_SECONDS
        ]
        for connection in sorted(silent, key=lambda each: each.last_active)[:CLOSED_AT_ONCE]:
            self.hang_up(connection, "it has sent no request, and there are as many connections as may be")

    def clear(self) -> None:
        """Forget all connections; they are closed with the selector."""
        OPEN_FILES.count_connections(-len(self.by_channel))
        self.by_channel.clear()

    def part(self, connection: Connection, reason: str) -> None:
        """Forget a connection that was closed by its peer or failed."""
        if reason.startswith(ORDINARY_ENDS):
            log.info("the connection from %s ended: %s", connection, reason)
        elif reason:
            connection.door.gate.tell_bad_end(connection, f"the connection from {connection} ended: {reason}")
        self._abandon(connection)

    def _abandon(self, connection: Connection) -> None:
        if self.by_channel.pop(connection.channel_id, None) is None:
            return
        OPEN_FILES.count_connections(-1)
        self._admission.leave(connection.peer[0])
        connection.door.gate.leave(connection)
        self._memory.handed_out -= sum(len(frame) for frame, _ in connection.pending)
        connection.pending.clear()
        for call in connection.abandon():
            self._memory.handed_out -= call.size if call.parts is None else 0
            # A member that waits in a join, or a fetch that waits for records, does not wait any longer.
            if call.on_abandoned is not None:
                call.on_abandoned()
        connection.door.table.disconnected(connection)


def is_unknown(connection: Connection) -> bool:
    """True if a connection has shown nothing yet: it has not logged in where it must, or has sent no request."""
    login = connection.login
    if login is not None:
        return login.state is not LoginState.DONE
    return connection.last_active == connection.since
