"""The sockets of a node, and the one event loop in which all its roles run (decisions 0004, 0133).

    Selector ──► frames ──► RequestHandler ──► the listener's request table ──► responses ──► Selector
        └──────► accepted, disconnected ──► Connections

A turn of the loop handles what was received and which connections ended, then runs callbacks of other threads, timers
and what the roles have to do. All state belongs to the thread that runs the loop.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

from ottla.broker.authentication.listener_security import ListenerSecurity
from ottla.broker.connections import Connections
from ottla.broker.farewell import Farewell
from ottla.broker.idle_connections import watch_idle
from ottla.broker.peers.own_connection import OwnConnection
from ottla.broker.request_handler import RequestHandler
from ottla.broker.requests import request_log
from ottla.broker.requests.admission import Admission
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.request_table import Door
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.connection_limits import read_overrides
from ottla.broker.settings.endpoints import Endpoint, reached_from_here
from ottla.broker.throttle import Throttle
from ottla.broker.timers import Timers, repeat
from ottla.clock import Clock
from ottla.errors import ConfigError
from ottla.network.listener import ConnectionLimit, Listener
from ottla.network.memory_budget import UNLIMITED, MemoryBudget
from ottla.network.selector import Selector

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""The interval between two checks for connections that occupy places without sending requests."""
ANSWERS_TOGETHER = 16
"""The most responses of one connection that are sent in one call, so that none of them waits long."""


class Role(Protocol):
    """A part of a node that the loop drives."""

    def patience(self, now: float) -> float | None:
        """Return the seconds until the role has something to do; None if only sockets and timers matter."""

    def receive(self, now: float) -> None:
        """Handle what arrived on the role's own connections. Called before timers run: a timeout must not count what is here."""

    def go_on(self, now: float) -> None:
        """Do what is due. Called at the end of each turn."""


class BoundListeners:
    """The listeners of one role: ports that are bound, each with its security settings."""

    def __init__(self, server: SocketServer, config: BrokerConfig, limit: ConnectionLimit | None = None) -> None:
        """Bind the ports. Connections are refused until `open`. ConfigError states what is wrong."""
        self._selector = server.selector
        self.securities = {
            name: ListenerSecurity(config, name, protocol) for name, protocol in config.protocols().items()
        }
        self.names = {self._bind(each, limit): each.name for each in config.endpoints()}

    def _bind(self, endpoint: Endpoint, limit: ConnectionLimit | None) -> Listener:
        security = self.securities[endpoint.name]
        how = security.make_channel, security.max_frame_bytes, limit
        try:
            return self._selector.bind(endpoint.host, endpoint.port, *how)
        except OSError as error:
            raise ConfigError(error.strerror or str(error)) from None

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each listener, by its name, as it is reached on this machine."""
        return {name: reached_from_here(*listener.address) for listener, name in self.names.items()}

    @property
    def bound(self) -> dict[str, tuple[str, int]]:
        """The host and port of each listener, by its name."""
        return {name: listener.address for listener, name in self.names.items()}

    def open(self) -> None:
        """Accept connections. ConfigError if another process that had bound the same port listens already."""
        try:
            for listener in self.names:
                self._selector.open_listener(listener)
        except OSError as error:
            raise ConfigError(error.strerror or str(error)) from None

    def close(self) -> None:
        """Refuse connections from now on."""
        for listener in self.names:
            self._selector.close_listener(listener)


class SocketServer:
    """Owns the selector, the connections, the timers and the loop of a node."""

    def __init__(self, config: BrokerConfig, clock: Clock, max_accepted: int) -> None:
        self.clock = clock
        self.timers = Timers()
        self._idle_seconds = config.connections_max_idle_ms / 1000
        self._calls: deque[Callable[[], None]] = deque()
        self._roles: list[Role] = []
        queued = config.queued_max_request_bytes
        self.memory = MemoryBudget(queued if queued >= 0 else UNLIMITED)
        self.admission = Admission(
            config.max_connections_per_ip, read_overrides(config.max_connections_per_ip_overrides)
        )
        self.selector = Selector(
            max_frame_bytes=config.socket_request_max_bytes,
            clock=clock,
            memory=self.memory,
            max_accepted=max_accepted,
            tells_early=False,
        )
        by_channel: dict[Hashable, Connection] = {}
        self.farewell = Farewell(self.selector, clock, by_channel, self._take_news)
        self.throttle = Throttle(self.selector, self.timers, clock, by_channel)
        self.connections = Connections(by_channel, self.selector, self.memory, self.admission, self.throttle)
        self.handler = RequestHandler(self.connections, self.throttle, self.farewell, self.selector, self.memory, clock)

    def add_role(self, role: Role, listeners: BoundListeners, door: Callable[[str], Door]) -> None:
        """Drive a role, and treat connections of its listeners as `door` says for each listener's name."""
        self._roles.append(role)
        for listener, name in listeners.names.items():
            self.connections.add_door(listener, door(name))

    def remove_role(self, role: Role) -> None:
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
        """Begin with what is repeated: closing idle and silent connections."""
        connections = self.connections
        watch_idle(self._idle_seconds, self.clock, self.timers, connections.by_channel, connections.leave)
        close_silent = lambda: connections.close_silent(self.clock.monotonic())  # noqa: E731
        repeat(self.timers, self.clock, "silent connections", close_silent, lambda: LOOK_SECONDS)

    def turn(self) -> None:
        """Wait until something happens, and handle it."""
        selector = self.selector
        selector.poll(self._patience())
        now = self.clock.monotonic()
        self._take_in(selector.completed_receives, now)
        self._take_news(now)
        for newcomer in selector.accepted:  # they may take the places of connections that have just ended
            self.connections.welcome(newcomer, now)
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
                role.go_on(now)
        except Exception:
            log.exception("an error in the event loop; the node goes on")
        self.handler.uncork()

    def close(self) -> None:
        """Close all sockets without waiting for anything that is still to be sent."""
        self.selector.close_all()
        self.connections.clear()

    def _patience(self) -> float | None:
        if self._calls or self.farewell.begun:
            return 0.0
        now = self.clock.monotonic()
        patience = self.timers.patience(now)
        for role in self._roles:
            span = role.patience(now)
            if span is not None and (patience is None or span < patience):
                patience = span
        return patience

    def _take_in(self, received: Sequence[tuple[Hashable, memoryview]], now: float) -> None:
        """Handle frames. If a connection has sent several requests, some responses leave together.

        The response to a Produce that satisfies a waiting fetch leaves after the fetch's response: sending it wakes its
        client, which costs as much time as answering the fetch.
        """
        selector, connections = self.selector, self.connections.by_channel
        last, corks = len(received) - 1, not request_log.wanted()
        kept = 0
        for number, (channel_id, frame) in enumerate(received):
            connection = connections.get(channel_id)
            if connection is None:
                self.memory.handed_out -= len(frame)
                if isinstance(channel_id, OwnConnection):
                    channel_id.take(frame)
                continue
            table = connection.door.table
            more = corks and number < last and received[number + 1][0] == channel_id
            if not kept and (more or (corks and table.may_be_awaited(frame))):
                selector.cork(channel_id)
            try:
                self.handler.receive(connection, frame, now)
            except Exception as error:
                self._drop(connection, frame, error)
            kept = kept + 1 if more and kept < ANSWERS_TOGETHER else 0
            if not kept:
                if table.has_due:
                    self.handler.keep(channel_id)
                else:
                    selector.uncork(channel_id)

    def _drop(self, connection: Connection, frame: memoryview, error: Exception) -> None:
        """Close the connection of a request that failed before a handler had it; the others are served on."""
        log.error("a request could not be taken in connection=%s", connection, exc_info=error)
        if not any(each is frame for each, _ in connection.pending):
            self.memory.handed_out -= len(frame)
        why = "there is no memory for its request" if isinstance(error, MemoryError) else "its request failed"
        self.connections.hang_up(connection, f"{why}, as logged above")

    def _take_news(self, now: float) -> None:
        """Handle the responses that were sent, and the connections that ended."""
        connections = self.connections.by_channel
        for channel_id in self.selector.completed_sends:
            connection = connections.get(channel_id)
            if connection is not None:
                self.handler.sent(connection, now)
        for channel_id, reason in self.selector.disconnected.items():
            connection = connections.get(channel_id)
            if connection is not None:
                self.connections.part(connection, reason)
            elif isinstance(channel_id, OwnConnection):
                channel_id.part(reason)
