"""The sockets of a node, and the one event loop in which all its roles run (decisions 0004, 0133).

    Selector ──► frames ──► RequestHandler ──► the listener's request table ──► responses ──► Selector
        └──────► accepted, disconnected ──► Connections

A turn of the loop handles what was received and which connections ended, then runs callbacks of other threads, timers
and what the roles have to do. All state belongs to the thread that runs the loop.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Protocol

from ottla.broker.event_loop.timers import Timers, repeat
from ottla.broker.network_server import request_log
from ottla.broker.network_server.admission import ConnectionLimits
from ottla.broker.network_server.connection import Connection
from ottla.broker.network_server.connections import Connections
from ottla.broker.network_server.graceful_shutdown import GracefulShutdown
from ottla.broker.network_server.request_handler import RequestHandler
from ottla.broker.network_server.request_table import ListenerContext
from ottla.broker.network_server.throttle import Throttle
from ottla.broker.peers.own_connection import OutgoingConnection
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.connection_limits import read_overrides
from ottla.clock import Clock
from ottla.network.listener import Listener
from ottla.network.memory_budget import UNLIMITED, MemoryBudget
from ottla.network.selector import Selector

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""The interval between two checks for connections that occupy places without sending requests."""
ANSWERS_TOGETHER = 16
"""The maximum number of a connection's responses per call, so that none of them waits long."""


class ServerRole(Protocol):
    """A role of a node, run by the event loop."""

    def time_until_next(self, now: float) -> float | None:
        """Return the seconds until the role has something to do; None if only sockets and timers matter."""

    def receive(self, now: float) -> None:
        """Handle messages on the role's own connections.

        Called before timers run, so that a message that has arrived precedes its timeout.
        """

    def continue_work(self, now: float) -> None:
        """Run what is due. Called at the end of each turn."""


class SocketServer:
    """Owns the selector, the connections, the timers and the loop of a node."""

    def __init__(self, config: BrokerConfig, clock: Clock, max_accepted: int) -> None:
        self.clock = clock
        self.timers = Timers()
        self._idle_seconds = config.connections_max_idle_ms / 1000
        self._calls: deque[Callable[[], None]] = deque()
        self._roles: list[ServerRole] = []
        queued = config.queued_max_request_bytes
        self.memory = MemoryBudget(queued if queued >= 0 else UNLIMITED)
        self.admission = ConnectionLimits(
            config.max_connections_per_ip, read_overrides(config.max_connections_per_ip_overrides)
        )
        self.selector = Selector(
            max_frame_bytes=config.socket_request_max_bytes,
            clock=clock,
            memory=self.memory,
            max_accepted=max_accepted,
            reports_early=False,
        )
        by_channel: dict[Hashable, Connection] = {}
        self.shutdown = GracefulShutdown(self.selector, clock, by_channel, self._handle_events)
        self.throttle = Throttle(self.selector, self.timers, clock, by_channel)
        self.connections = Connections(by_channel, self.selector, self.memory, self.admission, self.throttle)
        self.handler = RequestHandler(self.connections, self.throttle, self.shutdown, self.selector, self.memory, clock)

    def add_role(
        self, role: ServerRole, listeners: Mapping[Listener, str], door: Callable[[str], ListenerContext]
    ) -> None:
        """Run a role in the loop. `door` returns the treatment of connections by the name of each of its listeners."""
        self._roles.append(role)
        for listener, name in listeners.items():
            self.connections.add_listener(listener, door(name))

    def add_silent_role(self, role: ServerRole) -> None:
        """Run a role without listeners in the loop."""
        self._roles.append(role)

    def remove_role(self, role: ServerRole) -> None:
        self._roles.remove(role)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Have `callback` called in the loop; from any thread."""
        self._calls.append(callback)
        self.selector.wakeup()

    @property
    def has_calls(self) -> bool:
        """True if callbacks wait to be called."""
        return bool(self._calls)

    def start(self) -> None:
        """Start the repeated tasks: closing idle and silent connections."""
        connections, clock, limit = self.connections, self.clock, self._idle_seconds
        if limit >= 0:
            close_idle = lambda: connections.close_idle(clock.monotonic(), limit)  # noqa: E731
            seconds = max(limit / 10, 0.1)
            repeat(self.timers, clock, "connections.max.idle.ms", close_idle, lambda: seconds, first_seconds=0)
        close_silent = lambda: connections.close_silent(clock.monotonic())  # noqa: E731
        repeat(self.timers, clock, "silent connections", close_silent, lambda: LOOK_SECONDS)

    def turn(self) -> None:
        """Wait until something happens, and handle it."""
        selector = self.selector
        selector.poll(self._time_until_next())
        now = self.clock.monotonic()
        self._handle_received(selector.completed_receives, now)
        self._handle_events(now)
        for newcomer in selector.accepted:  # after closed connections have freed their places
            self.connections.accept(newcomer, now)
        self.run_due()

    def run_due(self) -> None:
        """Run callbacks, timers and what the roles have to do, without waiting for sockets."""
        now = self.clock.monotonic()
        try:
            for role in self._roles:
                role.receive(now)
            while self._calls:
                self._calls.popleft()()
            self.timers.run(now)
            for role in self._roles:
                role.continue_work(now)
        except Exception:
            log.exception("an error in the event loop; the node continues")
        self.handler.flush_channels()

    def close(self) -> None:
        """Close all sockets without waiting for anything that is still to be sent."""
        self.selector.close_all()
        self.connections.clear()

    def _time_until_next(self) -> float | None:
        if self._calls or self.shutdown.has_started:
            return 0.0
        now = self.clock.monotonic()
        patience = self.timers.time_until_next(now)
        for role in self._roles:
            span = role.time_until_next(now)
            if span is not None and (patience is None or span < patience):
                patience = span
        return patience

    def _handle_received(self, received: Sequence[tuple[Hashable, memoryview]], now: float) -> None:
        """Handle frames. If a connection has sent several requests, some responses leave together.

        The response to a Produce that satisfies a waiting fetch leaves after the fetch's response: sending it wakes its
        client, which costs as much time as answering the fetch.
        """
        selector, connections = self.selector, self.connections.by_channel
        last, corks = len(received) - 1, not request_log.is_enabled()
        kept = 0
        for number, (channel_id, frame) in enumerate(received):
            connection = connections.get(channel_id)
            if connection is None:
                self.memory.handed_out -= len(frame)
                if isinstance(channel_id, OutgoingConnection):
                    channel_id.handle_frame(frame)
                continue
            table = connection.door.table
            more = corks and number < last and received[number + 1][0] == channel_id
            if not kept and (more or (corks and table.may_be_awaited(frame))):
                selector.cork(channel_id)
            try:
                self.handler.handle_frame(connection, frame, now)
            except Exception as error:
                self._close_with_error(connection, frame, error)
            kept = kept + 1 if more and kept < ANSWERS_TOGETHER else 0
            if not kept:
                if table.has_due:
                    self.handler.keep_channel(channel_id)
                else:
                    selector.uncork(channel_id)

    def _close_with_error(self, connection: Connection, frame: memoryview, error: Exception) -> None:
        """Close the connection of a request that failed before a handler had it; the others are served on."""
        log.error("a request could not be read connection=%s", connection, exc_info=error)
        if not any(each is frame for each, _ in connection.pending):
            self.memory.handed_out -= len(frame)
        why = "not enough memory for its request" if isinstance(error, MemoryError) else "its request failed"
        self.connections.disconnect(connection, f"{why}, as logged above")

    def _handle_events(self, now: float) -> None:
        """Handle the responses that were sent, and the connections that ended."""
        connections = self.connections.by_channel
        for channel_id in self.selector.completed_sends:
            connection = connections.get(channel_id)
            if connection is not None:
                self.handler.handle_sent(connection, now)
        for channel_id, reason in self.selector.disconnected.items():
            connection = connections.get(channel_id)
            if connection is not None:
                self.connections.handle_closed(connection, reason)
            elif isinstance(channel_id, OutgoingConnection):
                channel_id.handle_closed(reason)
