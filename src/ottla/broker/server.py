"""The one loop of a broker: frames in, handlers, frames out.

    Selector ──► frame ──► header ──► body ──► handler ──► response ──► Selector
                                                  └─ later: the call is kept, and answered by an append or a timer

The requests of a connection are handled one at a time, in order: what comes behind a request that waits, or behind an
answer that the client does not take, waits too, but for Produces behind Produces (`requests/connection.py`). All state belongs to the thread that is in `run`.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack

from ottla.broker.authentication.authentication import Authentication
from ottla.broker.authentication.listener_security import ListenerSecurity, warn_of
from ottla.broker.authentication.passwords import read_users
from ottla.broker.disk import Disk
from ottla.broker.farewell import Farewell
from ottla.broker.gate import Gate
from ottla.broker.handlers import FORWARDED, HANDLERS, guarded, is_spoken, spoken_versions
from ottla.broker.idle_connections import watch_idle
from ottla.broker.joined import join
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partitions import ensure_open
from ottla.broker.peers.own_connection import OwnConnection
from ottla.broker.plain_way import PlainWay
from ottla.broker.requests import request_log
from ottla.broker.requests.admission import Admission, affordable_connections
from ottla.broker.requests.call import Call, HangUp, Outcome
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.reading import plain_address, read_request
from ottla.broker.requests.timing import Timing
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.connection_limits import read_overrides
from ottla.broker.settings.endpoints import Endpoint, reached_from_here
from ottla.broker.throttle import Throttle
from ottla.broker.timers import Timers
from ottla.clock import Clock, SystemClock
from ottla.errors import ConfigError, KafkaError, OttlaError, ProtocolError
from ottla.model import Part, size_of
from ottla.network.listener import Listener
from ottla.network.memory_budget import UNLIMITED, MemoryBudget
from ottla.network.selector import Selector
from ottla.protocol.conversation import decode_header, encode_response
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.schema import Message
from ottla.storage.directory.data_directory import DataDirectory

log = logging.getLogger(__name__)

ANSWERS_TOGETHER = 16
"""Answers of one connection that leave in one call at most, so that none waits for long."""
ORDINARY_ENDS = ("the peer reset the connection", "the peer closed the connection", "connection timed out")


class Server:
    """A broker: its port, its loop and its node."""

    def __init__(self, config: BrokerConfig, clock: Clock | None = None) -> None:
        """Listen, lock the directory and read what is in it; OttlaError where that cannot be."""
        self.config = config
        self._clock = clock or SystemClock()
        self._timers = Timers()
        self._disk = Disk(self.call_soon)
        self._calls: deque[Callable[[], None]] = deque()
        self.connections: dict[Hashable, Connection] = {}
        self._corked: list[int] = []
        self._full = self._stopping = False
        self._failure: OttlaError | None = None  # why it stopped by itself
        self._temporary = ""
        self.counts: Counter[int] | None = None  # of requests, by the key of their API, where somebody reads them
        self._memory = MemoryBudget(
            config.queued_max_request_bytes if config.queued_max_request_bytes >= 0 else UNLIMITED
        )
        self._admission = Admission(
            config.max_connections_per_ip, read_overrides(config.max_connections_per_ip_overrides)
        )
        self._selector = Selector(
            max_frame_bytes=config.socket_request_max_bytes,
            clock=self._clock,
            memory=self._memory,
            max_accepted=affordable_connections(config.max_connections),
            tells_early=False,
        )
        self._timing = Timing(self._selector, self._clock)
        self._farewell = Farewell(self._selector, self._clock, self.connections, self._take_news)
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
            self._directory = DataDirectory.open(
                config.log_dirs or self._temporary, node_id=config.node_id, formatted=config.joins
            )
            undo.callback(lambda: self._directory.close(clean=False))
            apis, parts = spoken_versions(joins=config.joins), (self._clock, self._timers, self._disk)
            self.node = BrokerNode(config, self._directory, *parts, apis)
            around = self._selector, self.call_soon, self._end, self._fail
            self._joined = join(self.node, self._listeners, *around) if config.joins else None
            self.node.reached_at = self.addresses
            self._throttle = Throttle(self._selector, self._timers, self._clock, self.connections, self)
            self.node.passwords.ensure(users)
            known = self._securities, self.node.passwords, self.node.tokens
            self.node.authentication = Authentication(config, *known, self._timers, self._clock, self.call_soon)
            gate = self._selector, self._memory, self._timers, self._clock, config.socket_request_max_bytes
            self._gate = Gate(self.node.authentication, *gate)
            self.plain_way = PlainWay(self.node, self._memory, self._selector.send, self._hang_up)
            self.node.topics.on_configured(self._configure)
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
        self._selector.allow(affordable_connections(config.max_connections))
        self.node.authentication.configure(config)

    def _listen(self, endpoint: Endpoint) -> Listener:
        security = self._securities[endpoint.name]
        try:
            return self._selector.listen(endpoint.host, endpoint.port, security.make_channel, security.max_frame_bytes)
        except OSError as error:
            raise ConfigError(error.strerror or str(error)) from None

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

    def when_ready(self, tell: Callable[[], None]) -> None:
        """Have `tell` called once clients are answered: at once, or when the controllers have let the broker in."""
        if self._joined is None:
            tell()
        else:
            self._joined.on_serving = tell

    def _end(self) -> None:
        self._stopping = True
        self._selector.wakeup()

    def run(self) -> None:
        """Serve until `stop`, then answer what is under way, close the logs and unlock the directory.

        OttlaError where it had to stop by itself.
        """
        try:
            if self._joined is not None:
                self._joined.start()
            self.node.start_chores()
            self.node.watch_place(self._fail)
            watch_idle(
                self.config.connections_max_idle_ms / 1000, self._clock, self._timers, self.connections, self._leave
            )
            self._gate.watch(self._hang_up)
            while not self._stopping:
                self._turn()
        finally:
            self._close()
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: OttlaError) -> None:
        """Stop, since there is nothing left that could be served."""
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
            self._welcome(newcomer, now)
        self._do_chores(now)

    def _take_in(self, received: Sequence[tuple[Hashable, memoryview]], now: float) -> None:
        """Handle what has come. Where a connection has sent several requests, some answers leave together."""
        selector, connections = self._selector, self.connections
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
            if more and not kept:
                selector.cork(channel_id)
            self._receive(connection, frame, now)
            kept = kept + 1 if more and kept < ANSWERS_TOGETHER else 0
            if not kept:
                selector.uncork(channel_id)

    def _take_news(self, now: float) -> None:
        """Hear which answers are gone, and which connections."""
        connections = self.connections
        for channel_id in self._selector.completed_sends:
            connection = connections.get(channel_id)
            if connection is not None:
                self._sent(connection, now)
        for channel_id, reason in self._selector.disconnected.items():
            connection = connections.get(channel_id)
            if connection is not None:
                self._part(connection, reason)
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
        self._uncork()

    def _uncork(self) -> None:
        """Let answers go that were kept for others that followed at once."""
        while self._corked:
            self._selector.uncork(self._corked.pop())

    def _welcome(self, channel_id: int, now: float) -> None:
        selector = self._selector
        peer, local = plain_address(selector.peer(channel_id)), plain_address(selector.local(channel_id))
        listener = selector.listener(channel_id)
        assert listener is not None
        connection = Connection(channel_id, peer, local, now, self._listeners[listener])
        if self._admission.admit(peer[0]):
            self.connections[channel_id] = connection
            self._throttle.welcome(connection, self.node.connection_delay_ms(peer[0], now))
            self._gate.welcome(connection, now, self._hang_up)
        else:
            most = self._admission.most(peer[0])
            log.info("closing the connection from %s: its address has %d, as many as it may", connection, most)
            selector.close(channel_id)
        if selector.full and not self._full:
            log.warning("newcomers wait: there are %d connections, as many as may be", len(self.connections))
        self._full = selector.full

    def _patience(self) -> float | None:
        return 0.0 if self._calls or self._stopping else self._timers.patience(self._clock.monotonic())

    def _receive(self, connection: Connection, frame: memoryview, now: float) -> None:
        """Handle a frame, or put it behind those before it."""
        connection.last_active = now
        if self.counts is not None:
            self.counts[frame[0] << 8 | frame[1]] += 1
        # One request at a time: an answer must not overtake another's, and what a client may make us hold is bounded
        # by not reading on.
        if connection.pending or not self._may_go_on(connection, frame):
            if not connection.pending:
                self._selector.mute(connection.channel_id)
            connection.pending.append((frame, now))
        else:
            self.handle(connection, frame, now, now)

    def _sent(self, connection: Connection, now: float) -> None:
        """An answer is gone: what waited behind it may go on."""
        connection.last_active = now
        if connection.unlogged is not None and not self._selector.queued_bytes(connection.channel_id):
            connection.unlogged(now)
            connection.unlogged = None
        if connection.pending:
            self.go_on(connection, now)

    def _may_go_on(self, connection: Connection, frame: memoryview) -> bool:
        if self._selector.queued_bytes(connection.channel_id):
            return False
        return connection.call is None or (
            connection.lets_append(frame) and self.node.quotas is None and not request_log.wanted()
        )

    def go_on(self, connection: Connection, now: float) -> None:
        """Handle what waited behind an answer, as far as nothing else stands in its way."""
        while connection.pending and self._may_go_on(connection, connection.pending[0][0]):
            frame, arrived = connection.pending.popleft()
            self.handle(connection, frame, now, arrived)
        if not connection.pending and not self._stopping:
            self._selector.unmute(connection.channel_id)

    def handle(self, connection: Connection, frame: memoryview, now: float, arrived: float) -> None:
        """Answer a request, or begin to."""
        if connection.login is not None and not self._gate.lets_in(connection, frame, now, self._hang_up):
            return
        if connection.call is None and self.plain_way.takes(connection, frame):
            return self._note_answer(connection)
        try:
            header, position = decode_header(frame)
            line = HANDLERS[header.api_key]
            call = Call(self, connection, header, now, len(frame))
            call.arrived = arrived
            if not is_spoken(line.api.name, joins=self.config.joins):
                raise ProtocolError(f"it asks for {line.api.name}, which this broker of a cluster does not serve yet")
            if header.api_version in line.versions:
                request = read_request(line.api.request, header.api_version, frame, position)
            # The one request that is answered in whatever version: it is how a client finds out which versions there
            # are.
            elif header.api_key == ApiVersionsRequest.KEY:
                request = None
                call.response_version = 0  # which every client can read, so that it may ask again
            else:
                raise ProtocolError(
                    f"it asks for {line.api.name} v{header.api_version}, versions {line.versions} are spoken"
                )
        except ProtocolError as error:
            self._memory.handed_out -= len(frame)
            self._hang_up(connection, str(error))
        else:
            joined = self._joined
            if joined is not None and line.api.name in FORWARDED:
                self.carry_out(call, lambda: joined.forward(call, bytes(frame)))
            elif self.node.access is None:
                self.carry_out(call, lambda: line.handle(self.node, call, request))
            else:
                self.carry_out(call, lambda: guarded(self.node, line, call, request))

    def carry_out(self, call: Call, work: Callable[[], Message | Outcome]) -> None:
        """Do some work for a call, and answer it unless that is to come later; what fails, costs one connection."""
        connection = call.connection
        connection.begin(call)
        parts: Sequence[Part] = ()
        entry = self._timing.begin(call) if request_log.wanted() else None
        if self.node.quotas is not None:
            work = self._throttle.counted(self.node.quotas, call, work)
        try:
            response = work()
            if response is Outcome.LATER:
                return None if entry is None else entry.pause(self._clock.monotonic())
            if not isinstance(response, Outcome):
                parts = encode_response(response, call.response_version, call.header.correlation_id)
        except HangUp as error:
            self._hang_up(connection, str(error))
            return
        except Exception:
            log.exception("%s from %s failed", HANDLERS[call.header.api_key].api.name, connection)
            self._hang_up(connection, "its request failed, as logged above")
            return
        self._memory.handed_out -= call.size
        if entry is not None:
            entry.answer(response, size_of(parts), self._clock.monotonic())
        if connection.call is call:
            self._send_answer(call, parts)
        else:
            call.parts = parts
        if entry is not None or call.pause_ms:
            self._answered(call, entry)

    def _send_answer(self, call: Call, parts: Sequence[Part]) -> None:
        """Send what was due, and what waited for that."""
        connection = call.connection
        connection.call = None
        if parts:
            self._selector.send(connection.channel_id, parts)
            self._after_answer(call)
        if connection.behind:
            for more in connection.take_answers():
                self._selector.send(connection.channel_id, more)

    def _answered(self, call: Call, entry: request_log.RequestTimes | None) -> None:
        """What is left to do when an answer is on its way, and seldom is."""
        if entry is not None:
            self._timing.note(call, HANDLERS[call.header.api_key].api.name, entry, self.config.slow_request_ms)
        if call.pause_ms and call.connection.call is None:
            self._throttle.pause(call)

    def _note_answer(self, connection: Connection) -> None:
        if self._stopping:
            self._farewell.answered_last.add(connection.channel_id)

    def _after_answer(self, call: Call) -> None:
        self._note_answer(call.connection)
        if call.header.api_key == SaslAuthenticateRequest.KEY:
            self._gate.after_step(call.connection)

    def resume(self, call: Call, work: Callable[[], Message | Outcome]) -> None:
        """Go on with a call that was kept, unless its client has gone; then with what waits behind it."""
        connection = call.connection
        if connection.is_under_way(call):
            if connection.behind:  # whose answers may leave with this one
                self._selector.cork(connection.channel_id)
                self._corked.append(connection.channel_id)
            self.carry_out(call, work)
            if connection.pending:
                self.go_on(connection, self._clock.monotonic())

    def _hang_up(self, connection: Connection, reason: str) -> None:
        """Close a connection of which no sense can be made any more; the others do not notice."""
        log.warning("closing the connection from %s: %s", connection, reason)
        self._selector.uncork(connection.channel_id)  # with the answers to what came before
        self._selector.close(connection.channel_id)
        self.abandon(connection)

    def _part(self, connection: Connection, reason: str) -> None:
        """Let go of a connection that has ended."""
        if reason:
            level = logging.INFO if reason.startswith(ORDINARY_ENDS) else logging.WARNING
            log.log(level, "the connection from %s ended: %s", connection, reason)
        self.abandon(connection)

    def abandon(self, connection: Connection) -> None:
        if self.connections.pop(connection.channel_id, None) is None:
            return
        self._admission.leave(connection.peer[0])
        self._gate.leave(connection)
        self._memory.handed_out -= sum(len(frame) for frame, _ in connection.pending)
        connection.pending.clear()
        for call in connection.abandon():
            self._memory.handed_out -= call.size if call.parts is None else 0
            # A member that waits in a join, or a fetch that waits for records, is waited for no more.
            if call.on_abandoned is not None:
                call.on_abandoned()

    def _leave(self, connection: Connection) -> None:
        self._selector.close(connection.channel_id)
        self.abandon(connection)

    def _close(self) -> None:
        try:
            if self._joined is not None:
                self._joined.close()
            for listener in self._listeners:
                self._selector.close_listener(listener)
            for channel_id in self.connections:
                self._selector.mute(channel_id)
            self.node.waiting.close()
            self._uncork()
            self.node.cleaning.stop()
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
        self.node.authentication.close()
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

    def _remove_temporary(self) -> None:
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)
