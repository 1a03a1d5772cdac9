"""The one loop of a broker: frames in, answers out, and what is due meanwhile.

    Selector ──► frames ──► RequestHandler ──► answers ──► Selector
        └──────► who came, who went ──► Connections

Each turn takes what has come, hears what is gone, and does what others have asked for or what is due by the clock.
All state belongs to the thread that is in `run`.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack

from ottla.broker.authentication.authentication import Authentication
from ottla.broker.authentication.listener_security import ListenerSecurity, warn_of
from ottla.broker.authentication.passwords import read_users
from ottla.broker.chores import Chores
from ottla.broker.connections import Connections
from ottla.broker.disk import Disk
from ottla.broker.farewell import Farewell
from ottla.broker.gate import Gate
from ottla.broker.handlers import spoken_versions
from ottla.broker.idle_connections import watch_idle
from ottla.broker.joined import join
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.gap_check import GapCheck
from ottla.broker.partitions.partitions import ensure_open
from ottla.broker.peers.own_connection import OwnConnection
from ottla.broker.request_handler import RequestHandler
from ottla.broker.requests import request_log
from ottla.broker.requests.admission import Admission, affordable_connections
from ottla.broker.requests.connection import Connection
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.connection_limits import read_overrides
from ottla.broker.settings.endpoints import Endpoint, reached_from_here
from ottla.broker.throttle import Throttle
from ottla.broker.timers import Timers, repeat
from ottla.clock import Clock, SystemClock
from ottla.errors import ConfigError, KafkaError, OttlaError
from ottla.network.listener import Listener
from ottla.network.memory_budget import UNLIMITED, MemoryBudget
from ottla.network.selector import Selector
from ottla.protocol.messages.produce import ProduceRequest
from ottla.storage.directory.data_directories import open_directories
from ottla.storage.directory.privacy import is_open_to_others

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between two looks for connections that keep places for nothing."""
ANSWERS_TOGETHER = 16
"""Answers of one connection that leave in one call at most, so that none waits for long."""


class Server:
    """A broker: its port, its loop and its node."""

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        """Listen, lock the directory and read what is in it; OttlaError where that cannot be."""
        self.config = config
        self._clock = clock or SystemClock()
        self._timers = Timers()
        self._disk = Disk(self.call_soon)
        self._calls: deque[Callable[[], None]] = deque()
        self._failure: OttlaError | None = None  # why it stopped by itself
        self._temporary = ""
        queued = config.queued_max_request_bytes
        self._memory = MemoryBudget(queued if queued >= 0 else UNLIMITED)
        self._admission = Admission(
            config.max_connections_per_ip, read_overrides(config.max_connections_per_ip_overrides)
        )
        self._selector = Selector(
            max_frame_bytes=config.socket_request_max_bytes,
            clock=self._clock,
            memory=self._memory,
            max_accepted=affordable_connections(config.max_connections) if not config.joins else 0,
            tells_early=False,
        )
        by_channel: dict[Hashable, Connection] = {}
        self._farewell = Farewell(self._selector, self._clock, by_channel, self._take_news)
        with ExitStack() as undo:
            undo.callback(self._selector.close_all)
            self._end_request_log = request_log.begin(config.request_log)
            undo.callback(self._end_request_log)
            # The ports first: without them nothing in the directory is touched.
            self._securities = {
                name: ListenerSecurity(config, name, protocol) for name, protocol in config.protocols().items()
            }
            users = read_users(config.add_scram.value) if config.add_scram is not None else ()
            self._listeners = {self._listen(endpoint): endpoint.name for endpoint in config.endpoints()}
            if not config.log_dirs:
                self._temporary = tempfile.mkdtemp(prefix="ottla-")
                undo.callback(self._remove_temporary)
            where = config.directories or (self._temporary,)
            main = config.metadata_directory if config.log_dirs else ""
            self._directory = open_directories(where, node_id=config.node_id, formatted=config.joins, main=main)
            undo.callback(lambda: self._directory.close(clean=False))
            apis = spoken_versions(joins=config.joins, shows_metrics=bool(config.metrics_listen))
            self.node = BrokerNode(config, self._directory, self._clock, self._timers, self._disk, apis)
            self._gap_check = GapCheck(self._directory, self._disk)
            around = self._selector, self.call_soon, self._end, self._fail
            self._joined = join(self.node, self._listeners, *around, self._caught_up) if config.joins else None
            self.node.reached_at = self.addresses
            self.node.passwords.ensure(users)
            self._warn_of_open_directory()
            known = self._securities, self.node.passwords, self.node.tokens
            self.node.authentication = Authentication(config, *known, self._timers, self._clock, self.call_soon)
            gate = self._selector, self._memory, self._timers, self._clock, config.socket_request_max_bytes
            self._gate = Gate(self.node.authentication, *gate)
            throttle = Throttle(self._selector, self._timers, self._clock, by_channel)
            doors = self._selector, self._memory, self._admission, self._listeners, self._gate, throttle
            self.connections = Connections(by_channel, *doors)
            ways = self.connections, self._gate, throttle, self._farewell, self._selector, self._memory, self._clock
            self.handler = RequestHandler(self.node, self._joined, *ways)
            self.node.topics.on_configured(self._configure)
            self.node.topics.check_settings = self.node.authentication.check
            if not config.joins:
                self._open_ports()
            undo.pop_all()
        warn_of({name: (self._securities[name], each.address[0]) for each, name in self._listeners.items()})

    @property
    def bootstrap_servers(self) -> str:
        """An address for clients on this machine: that of the first listener."""
        return next(iter(self.addresses.values()))

    @property
    def addresses(self) -> dict[str, str]:
        """The same for each listener, by its name."""
        return {name: reached_from_here(*listener.address) for listener, name in self._listeners.items()}

    def _configure(self, config: BrokerConfig) -> None:
        """Let in as many as may be by now; who is in already stays."""
        self._admission.allow(config.max_connections_per_ip)
        if self._joined is None or self._joined.serving:
            self._selector.allow(affordable_connections(config.max_connections))
        self.node.authentication.configure(config)

    def _let_clients_in(self) -> None:
        """They waited in the kernel's queue: who does not know the cluster yet would tell them of no brokers and no topics."""
        self._configure(self.node.config)

    def _listen(self, endpoint: Endpoint) -> Listener:
        security = self._securities[endpoint.name]
        # Connections are refused until the logs are open, and in a cluster until the broker has caught up: a client is not kept waiting.
        try:
            return self._selector.bind(endpoint.host, endpoint.port, security.make_channel, security.max_frame_bytes)
        except OSError as error:
            raise ConfigError(error.strerror or str(error)) from None

    def _open_ports(self) -> None:
        """Accept connections; ConfigError if another process that had bound the port listens by now."""
        try:
            for listener in self._listeners:
                self._selector.open_listener(listener)
        except OSError as error:
            raise ConfigError(error.strerror or str(error)) from None

    def _caught_up(self) -> None:
        """Open the ports. Connections wait in the kernel's queue until the controllers have unfenced the broker, which follows at once."""
        try:
            self._open_ports()
        except ConfigError as error:
            self._fail(error)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Have `callback` called in the loop; from any thread."""
        self._calls.append(callback)
        self._selector.wakeup()

    def disown(self) -> None:
        """In a child that was forked: let go of the port, the connections and the directory, which are the parent's."""
        self._selector.disown()
        self._directory.close(clean=False)

    def stop(self) -> None:
        """Make `run` end; from any thread, or from a signal handler. A broker of a cluster hands over first."""
        if self._joined is None or not self._joined.leave():
            self._end()

    def crash(self) -> None:
        """For tests, in the loop: end as what is killed does. Nobody is answered any more, and the directory stays as it is."""
        for channel_id in self.connections.by_channel:
            self._selector.close(channel_id)
        self.connections.clear()
        self._failure = OttlaError("it was crashed on purpose")
        self._end()

    def when_ready(self, tell: Callable[[], None]) -> None:
        """Have `tell` called once clients are answered: at once, or when the controllers have let the broker in."""
        if self._joined is None:
            tell()
        else:
            self._joined.on_ready = tell

    def _end(self) -> None:
        self._farewell.begun = True
        self._selector.wakeup()

    def run(self) -> None:
        """Serve until `stop`, then answer what is under way, close the logs and unlock the directory.

        OttlaError where it had to stop by itself.
        """
        try:
            if self._joined is not None:
                self._joined.on_serving = self._let_clients_in
                self._joined.start()
            Chores(self.node, self._disk).begin()
            self._gap_check.begin(self.node.partitions.uncompacted())
            self.node.disk_watch.begin(self._fail)
            connections, idle_seconds = self.connections, self.config.connections_max_idle_ms / 1000
            watch_idle(idle_seconds, self._clock, self._timers, connections.by_channel, connections.leave)
            close_silent = lambda: connections.close_silent(self._clock.monotonic())  # noqa: E731
            repeat(self._timers, self._clock, "silent connections", close_silent, lambda: LOOK_SECONDS)
            self._gate.watch(connections.hang_up)
            while not self._farewell.begun:
                try:
                    self._turn()
                except MemoryError:
                    log.exception("the process has no memory left; the broker goes on with the next turn")
        finally:
            self._close()
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: OttlaError) -> None:
        """Stop, since there is nothing left that could be served; what fails after that follows from it."""
        if self._failure is None:
            log.critical("%s", error)
            self._failure = error
        self._end()

    def _turn(self) -> None:
        selector = self._selector
        selector.poll(self._patience())
        now = self._clock.monotonic()
        self._take_in(selector.completed_receives, now)
        self._take_news(now)
        for newcomer in selector.accepted:  # whose places may be those of the departed
            self.connections.welcome(newcomer, now, self.node.connection_rates.delay_ms)
        self._do_chores(now)

    def _take_in(self, received: Sequence[tuple[Hashable, memoryview]], now: float) -> None:
        """Handle what has come. Where a connection has sent several requests, some answers leave together.

        The answer to a Produce that a fetch has waited for leaves after the fetch's: to send it wakes its client, which takes as long as to
        answer the fetch.
        """
        selector, connections = self._selector, self.connections.by_channel
        last, corks = len(received) - 1, not request_log.wanted()
        kept = 0
        for number, (channel_id, frame) in enumerate(received):
            connection = connections.get(channel_id)
            if connection is None:
                self._memory.handed_out -= len(frame)
                if isinstance(channel_id, OwnConnection):
                    channel_id.take(frame)
                continue
            more = corks and number < last and received[number + 1][0] == channel_id
            if not kept and (more or (corks and self._may_be_awaited(frame))):
                selector.cork(channel_id)
            try:
                self.handler.receive(connection, frame, now)
            except Exception as error:
                self._drop(connection, frame, error)
            kept = kept + 1 if more and kept < ANSWERS_TOGETHER else 0
            if not kept:
                self._let_go(channel_id)

    def _drop(self, connection: Connection, frame: memoryview, error: Exception) -> None:
        """Close the connection of a request that failed before a handler had it; the others are served on."""
        log.error("a request could not be taken in connection=%s", connection, exc_info=error)
        if not any(each is frame for each, _ in connection.pending):
            self._memory.handed_out -= len(frame)
        why = "there is no memory for its request" if isinstance(error, MemoryError) else "its request failed"
        self.connections.hang_up(connection, f"{why}, as logged above")

    def _may_be_awaited(self, frame: memoryview) -> bool:
        """Whether it may bring what a fetch waits for."""
        return len(self.node.waiting) > 0 and len(frame) > 1 and frame[0] == 0 and frame[1] == ProduceRequest.KEY

    def _let_go(self, channel_id: Hashable) -> None:
        """Have answers leave that were kept: at once, or behind those of fetches that waited for what came, who have waited longer."""
        if self.node.waiting.has_due:
            self.handler.keep(channel_id)
        else:
            self._selector.uncork(channel_id)

    def _take_news(self, now: float) -> None:
        """Hear which answers are gone, and which connections."""
        connections = self.connections.by_channel
        for channel_id in self._selector.completed_sends:
            connection = connections.get(channel_id)
            if connection is not None:
                self.handler.sent(connection, now)
        for channel_id, reason in self._selector.disconnected.items():
            connection = connections.get(channel_id)
            if connection is not None:
                self.connections.part(connection, reason)
            elif isinstance(channel_id, OwnConnection):
                channel_id.part(reason)

    def _do_chores(self, now: float) -> None:
        try:
            while self._calls:
                self._calls.popleft()()
            self._timers.run(now)
            self.node.waiting.run_due()
        except Exception:
            log.exception("the broker goes on after an error of its own")
        self.handler.uncork()

    def _patience(self) -> float | None:
        return 0.0 if self._calls or self._farewell.begun else self._timers.patience(self._clock.monotonic())

    def _close(self) -> None:
        try:
            if self._joined is not None:
                self._joined.close()
            for listener in self._listeners:
                self._selector.close_listener(listener)
            for channel_id in self.connections.by_channel:
                self._selector.mute(channel_id)
            self.node.waiting.close()
            self.handler.uncork()
            self.node.cleaning.stop()
            self._gap_check.stop()
            self._finish_disk_work()
            self._farewell.send_the_rest()
            self._finish_disk_work()
            self._farewell.say_goodbye()
        finally:
            self._selector.close_all()
            self.connections.clear()
            self._close_directory()
            self._remove_temporary()
            self._end_request_log()
            if self.node.access is not None:
                self.node.access.close()

    def _finish_disk_work(self) -> None:
        """Let disk threads end, and those be answered who wait for that."""
        self._gate.close()
        # Flushes answer produce requests when they are done, and these answers may still be sent.
        while self._disk.busy or self._calls:
            self._disk.close()
            self._do_chores(self._clock.monotonic())

    def _close_directory(self) -> None:
        # A temporary directory is not worth the wait for the disk.
        clean = not self._temporary and self._failure is None
        try:
            for partition in self.node.partitions.unchecked if clean else ():
                ensure_open(partition)
            self._directory.close(clean=clean)
        except KafkaError as error:
            log.error("the shutdown is not clean, so the next start checks all logs: %s", error)

    def _warn_of_open_directory(self) -> None:
        path = self._directory.path
        if self.node.passwords.all() and is_open_to_others(path):
            log.warning(
                "data directory %s is open to all users of this machine and contains SCRAM keys of users; restrict it, "
                "such as by chmod 700",
                path,
            )

    def _remove_temporary(self) -> None:
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
