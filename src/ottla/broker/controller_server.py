"""The one loop of a controller: what others of the quorum ask, what they answer, and the machine that decides.

    Selector ──► frame ──► request ──► Raft ──► wishes ──► disk │ answers │ questions to others

It votes, and copies the metadata's log; while it leads, it is the *active controller*, who registers brokers and makes topics.
The disk is forced within the loop: nobody could be answered meanwhile.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from functools import partial

from ottla.broker.authentication.listener_security import is_loopback
from ottla.broker.controller_access import asker_of
from ottla.broker.controller_calls import ControllerCalls
from ottla.broker.controller_door import ControllerDoor
from ottla.broker.controllers import controller_apis
from ottla.broker.controllers.absences import Absences
from ottla.broker.controllers.active_controller import ActiveController
from ottla.broker.controllers.controller_apis import CONTROLLER_APIS
from ottla.broker.controllers.controller_peers import ControllerPeers
from ottla.broker.controllers.controller_snapshots import ControllerSnapshots
from ottla.broker.controllers.introduction import Introduction, introduction_of
from ottla.broker.controllers.quorum_log import PARTITION, QuorumLog
from ottla.broker.controllers.quorum_node import fixed_voters, leaderless_of, make_raft, place_of
from ottla.broker.controllers.raft_driver import RaftDriver
from ottla.broker.controllers.terms import terms
from ottla.broker.controllers.unkept import unkept
from ottla.broker.disk import Disk
from ottla.broker.machines.observed_snapshots import snapshot_rules
from ottla.broker.peers.loop_connection import LoopConnection
from ottla.broker.peers.own_connection import OwnConnection
from ottla.broker.peers.peer_login import PeerLogins
from ottla.broker.peers.split import Split
from ottla.broker.requests.admission import affordable_connections
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.reading import read_request
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import Endpoint, reached_from_here
from ottla.broker.settings.peer_security import towards_controllers
from ottla.broker.timers import Timers, repeat
from ottla.clock import Clock, SystemClock
from ottla.coordination.controller.events import BrokerGone
from ottla.coordination.quorum.events import ShutDown, Tick
from ottla.errors import ConfigError, ErrorCode, OttlaError, ProtocolError
from ottla.network.listener import Listener
from ottla.network.selector import Selector
from ottla.protocol.apis import APIS
from ottla.protocol.conversation import decode_header, encode_response
from ottla.protocol.headers import RequestHeader
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.protocol.schema import Message
from ottla.security.channels import channel_maker
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log

logger = logging.getLogger(__name__)
LEAVING_SECONDS = 1.0
"""How long one that led waits at most for the others to hear that it goes."""
HEARTBEATS = 1.5
"""How many of its heartbeats a broker may need until a new active controller wonders where it is."""
LOOK_SECONDS = 1.0
"""Between two looks at whether somebody leads."""
LEAST_SECONDS = 0.001
"""Between two looks at the clock: a moment that has come must not keep the loop from its sockets."""


def warn_of(hosts: Sequence[str]) -> None:
    """Say once that strangers could vote."""
    exposed = [host or "every address" for host in hosts if not is_loopback(host)]
    if exposed:
        logger.warning(
            "whoever can reach this controller by %s may ask it for votes and change who votes: have its listener speak SSL with "
            "ssl.client.auth=required, or keep it in a network that only controllers and brokers are in",
            " and ".join(exposed),
        )


def close_lent(log: Log, *, clean: bool) -> None:
    """What was appended is on the disk already."""
    log.close(sync=clean)


class Caller:
    """Who asks: one request at a time, the others wait behind it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.is_served = self.is_waiting = False
        self.broker: tuple[int, int] | None = None
        """A broker's number and epoch, if it has sent a heartbeat."""
        self.pending: deque[memoryview] = deque()


class ControllerServer:
    """A controller: its port, its loop and its replica of the quorum."""

    def __init__(
        self, config: BrokerConfig, clock: Clock | None = None, directory: DataDirectory | None = None
    ) -> None:
        """Listen, lock the directory and read what is in it; OttlaError where that cannot be.

        A `directory` that is given is a broker's in the same process: it is closed there, and only the metadata's log here.
        """
        self._config = config
        self._clock = clock or SystemClock()
        self._timers = Timers()
        self._selector = Selector(
            max_frame_bytes=config.socket_request_max_bytes,
            clock=self._clock,
            max_accepted=affordable_connections(config.max_connections),
        )
        self._callers: dict[Hashable, Caller] = {}
        self._rested: deque[tuple[Hashable, Caller]] = deque()
        """Who was answered, and may have asked more meanwhile."""
        self._calls = ControllerCalls(config, self._clock)
        self._soon: deque[Callable[[], None]] = deque()
        self._disk = Disk(self.call_soon, threads=1)
        self.split = Split()
        self._stopping = False
        self._leave_until: float | None = None
        with ExitStack() as undo:
            undo.callback(self._selector.close_all)
            security = towards_controllers(config)
            way = security, PeerLogins(security), channel_maker(security.config), self.split
            how = self._selector, self._timers, self._clock, *way
            self._door = ControllerDoor(config, self._selector, self._timers, self._clock, self.call_soon)
            undo.callback(self._door.close)
            self._listeners = {each.name: self._listen(each) for each in config.endpoints()}
            opened = directory or DataDirectory.open(config.metadata_directory, node_id=config.node_id, formatted=True)
            if directory is None:
                undo.callback(lambda: opened.close(clean=False))
            warn_of([endpoint.host for endpoint in config.endpoints() if self._door.is_open(endpoint.name)])
            log = QuorumLog.open(opened, self._clock, fixed_voters(config))
            lent = None if directory is None else directory.lend_log(PARTITION)
            self._close_storage = opened.close if lent is None else partial(close_lent, lent)
            bound = {name: listener.address for name, listener in self._listeners.items()}
            raft = make_raft(config, opened.meta, log, self._clock, random.random(), bound)
            name, where = f"ottla-controller-{config.node_id}", partial(place_of, raft, config)
            self._peers = ControllerPeers(lambda node: LoopConnection(f"{name}-{node}", *how), where)
            begin = partial(self._begin, terms(config, opened, log, self._clock, self._timers))
            self.driver = RaftDriver(raft, log, self, self._clock, random.random, begin)
            self._absences = Absences(lambda who: self.call_soon(partial(self._gone, who)))
            self._leaderless = leaderless_of(raft, config, self._clock.monotonic())
            self._first_heartbeats_seconds = config.broker_heartbeat_interval_ms / 1000 * HEARTBEATS
            rules, submit = snapshot_rules(config), self._disk.submit
            self._snapshots = ControllerSnapshots(log, rules, self._clock, submit, self.driver.look_anew)
            self.driver.snapshots = self._snapshots
            aside = ControllerPeers(lambda node: LoopConnection(f"{name}-{node}-aside", *how), where)
            told = introduction_of(config, raft.own_entry)
            self._introduction = Introduction(told, self.driver, aside, self._snapshots)
            self._calls.driver = self.driver
            undo.pop_all()

    def _listen(self, endpoint: Endpoint) -> Listener:
        try:
            return self._door.listen(endpoint)
        except OSError as error:
            raise ConfigError(error.strerror or str(error)) from None

    @property
    def addresses(self) -> dict[str, str]:
        """Where it listens, by the names of listeners."""
        return {name: reached_from_here(*listener.address) for name, listener in self._listeners.items()}

    def when_ready(self, tell: Callable[[], None]) -> None:
        """At once: who connects before the loop runs waits in the port's queue."""
        tell()

    def stop(self) -> None:
        """Make `run` end; from any thread, or from a signal handler. Who leads tells the others first."""
        self._stopping = True
        self._selector.wakeup()

    def run(self) -> None:
        """Take part in the quorum until `stop`; OttlaError where it has to end by itself."""
        clean = False
        try:
            self.driver.step(Tick())
            self._door.watch(self._hang_up)
            self._introduction.begin(self._timers, self._clock)
            self._sweep_tokens()
            self._look_for_leader()
            while not self._is_over():
                self._turn()
            clean = True
        except OttlaError as error:
            raise unkept("controller", error) from error
        finally:
            self._introduction.close()
            self._peers.close()
            self._selector.close_all()
            self._door.close()
            self._disk.close()
            self._end_storage(clean=clean)

    def _end_storage(self, *, clean: bool) -> None:
        """Where it ends by itself, why it does counts, and not that the disk takes none of its indexes either."""
        try:
            self._close_storage(clean=clean)
        except OttlaError as error:
            if clean:
                raise
            logger.info("%s", error)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Have the loop call it; from any thread."""
        self._soon.append(callback)
        self._selector.wakeup()

    # for the driver

    def send(self, node: int, number: int, request: Message) -> None:
        self._peers.ask(node, number, request)

    def reply(self, ticket: int, response: Message) -> None:
        self._calls.reply(ticket, response)

    def _sweep_tokens(self) -> None:
        """Look from time to time for delegation tokens that have ended, where there may be any."""
        if self._config.delegation_token_secret_key is not None:
            span = self._config.delegation_token_expiry_check_interval_ms / 1000
            repeat(
                self._timers,
                self._clock,
                "delegation.token.expiry.check.interval.ms",
                self._calls.sweep_tokens,
                lambda: span,
                first_seconds=0,
                fatal=(OttlaError,),  # the log of the quorum cannot be written
            )

    def _look_for_leader(self) -> None:
        """Log from time to time why there is no leader; a look that comes late was held up with everything else."""
        due = self._clock.monotonic()

        def look() -> None:
            nonlocal due
            now = self._clock.monotonic()
            late, due = now - due, now + LOOK_SECONDS
            self._leaderless.stood_still(late)
            if (sentence := self._leaderless.look(now)) is not None:
                logger.warning(sentence)

        repeat(self._timers, self._clock, "leader of the quorum", look, lambda: LOOK_SECONDS, first_seconds=0)

    # brokers that may be gone

    def _begin(self, make: Callable[[int], ActiveController], epoch: int) -> ActiveController:
        """A term, in which every broker that lives is heard soon."""
        term = make(epoch)
        self._timers.at(self._clock.monotonic() + self._first_heartbeats_seconds, lambda: self._look_for_unheard(term))
        return term

    def _look_for_unheard(self, term: ActiveController) -> None:
        if term is self.driver.term:
            for broker in term.machine.unheard():
                self._suspect(broker.broker_id, broker.epoch)

    def _suspect(self, broker_id: int, epoch: int) -> None:
        """It has hung up, or was not heard: find out whether its process has ended."""
        term = self.driver.term
        known = None if term is None else term.machine.metadata.registrations.get(broker_id)
        if known is None or known.epoch != epoch or not known.listeners:
            return
        place = known.listeners[0].host, known.listeners[0].port
        if not self.split.hides(place):
            self._absences.suspect((broker_id, epoch), *place)

    def _gone(self, who: tuple[int, int]) -> None:
        self.driver.decide(BrokerGone(*who), lambda _: None)

    # the loop

    def _turn(self) -> None:
        selector, now = self._selector, self._clock.monotonic()
        until_alarm = self._timers.patience(now)
        until_due = max(self.driver.raft.wake_at - now, LEAST_SECONDS)
        selector.poll(
            0.0
            if self._peers.news or self._rested or self._soon or self._snapshots.unfinished
            else min(until_due, until_due if until_alarm is None else until_alarm)
        )
        for channel_id, frame in selector.completed_receives:
            if isinstance(channel_id, OwnConnection):
                channel_id.take(frame)
            else:
                self._receive(channel_id, frame)
        for channel_id, reason in selector.disconnected.items():
            if isinstance(channel_id, OwnConnection):
                channel_id.part(reason)
            else:
                self._part(channel_id, reason)
        for newcomer in selector.accepted:
            self._callers[newcomer] = Caller(self._door.welcome(newcomer, self._hang_up))
        now = self._clock.monotonic()
        self._hear(now)  # what came while this process stood still, before others are thought to be silent
        self._timers.run(now)
        self._go_on(now)

    def _hear(self, now: float) -> None:
        news = self._peers.news
        while news:
            self._leaderless.heard(news[0], now)
            self.driver.step(news.popleft())

    def _go_on(self, now: float) -> None:
        """Tell the machine what came, and that time has passed."""
        rested = self._rested
        for _ in range(len(self._soon)):
            self._soon.popleft()()
        if self._snapshots.unfinished:
            self._snapshots.go_on()
        self.driver.look()
        self._hear(now)
        for _ in range(len(rested)):
            self._serve(*rested.popleft())
        if self.driver.raft.wake_at <= now:
            self.driver.step(Tick())

    def _is_over(self) -> bool:
        """Whether it may go: who led has told whoever listens, who stands knows what came of it, or has waited for that."""
        if not self._stopping:
            return False
        if self._leave_until is None:
            self._leave_until = self._clock.monotonic() + LEAVING_SECONDS
            self.driver.step(ShutDown())
        return not self.driver.raft.is_awaited or self._clock.monotonic() >= self._leave_until

    # who asks

    def _receive(self, channel_id: Hashable, frame: memoryview) -> None:
        caller = self._callers.get(channel_id)
        if caller is not None:
            caller.pending.append(frame)
            self._serve(channel_id, caller)

    def _serve(self, channel_id: Hashable, caller: Caller) -> None:
        """Take up what it asked, as far as nothing has to be waited for; it is not heard while something waits."""
        if caller.is_served or self._callers.get(channel_id) is not caller:
            return
        caller.is_served = True
        while caller.pending and not caller.is_waiting and channel_id in self._callers:
            self._handle(channel_id, caller, caller.pending.popleft())
        caller.is_served = False
        if channel_id in self._callers:
            (self._selector.mute if caller.pending else self._selector.unmute)(channel_id)

    def _handle(self, channel_id: Hashable, caller: Caller, frame: memoryview) -> None:
        """Answer a request at once, or hand it to the machine; what is none costs the connection."""
        if not self._door.lets_in(caller.connection, frame, self._hang_up):
            return
        try:
            header, position = decode_header(frame, CONTROLLER_APIS)
            request = self._read(channel_id, header, frame, position)
        except ProtocolError as error:
            self._hang_up(caller.connection, str(error))
            return
        except Exception:
            logger.exception("a request could not be read connection=%s", caller.connection)
            self._hang_up(caller.connection, "its request could not be read, as logged above")
            return
        if request is None:
            return
        if isinstance(request, BrokerHeartbeatRequest):
            caller.broker = request.broker_id, request.broker_epoch
        caller.is_waiting = True
        done = partial(self._done, channel_id, caller, header)
        if isinstance(request, SaslHandshakeRequest | SaslAuthenticateRequest):
            self._door.log_in(caller.connection, request, header.api_version, done)
            return
        if isinstance(request, BrokerRegistrationRequest):
            done = partial(self._registered, request.broker_id, done)
        self._calls.take(asker_of(caller.connection), request, header.api_version, done)

    def _registered(self, broker_id: int, done: Callable[[Message], None], response: Message) -> None:
        """Answer a registration. If another incarnation has a session, check whether its process has ended."""
        done(response)
        term = self.driver.term
        if term is None or getattr(response, "error_code", 0) != ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            return
        known = term.machine.metadata.registrations.get(broker_id)
        if known is not None and not known.fenced:
            self._suspect(broker_id, known.epoch)

    def _done(self, channel_id: Hashable, caller: Caller, header: RequestHeader, response: Message) -> None:
        """It has its answer; what it asked since is looked at when whatever led to that is over."""
        if self._callers.get(channel_id) is not caller:
            return
        caller.is_waiting = False
        self._answer(channel_id, header, response, header.api_version)
        if not caller.is_served:
            self._rested.append((channel_id, caller))

    def _read(self, channel_id: Hashable, header: RequestHeader, frame: memoryview, position: int) -> Message | None:
        """The request; None where it was one for versions, in a version that nobody knows, and is answered."""
        api, versions = APIS[header.api_key], controller_apis.spoken(header.api_key)
        if header.api_version in versions:
            request: Message = read_request(api.request, header.api_version, frame, position)
            return request
        if header.api_key != ApiVersionsRequest.KEY:
            raise ProtocolError(f"it asks for {api.name} v{header.api_version}, versions {versions} are spoken")
        self._answer(channel_id, header, controller_apis.api_versions(known=False), 0)
        return None

    def _answer(self, channel_id: Hashable, header: RequestHeader, response: Message, version: int) -> None:
        self._selector.send(channel_id, encode_response(response, version, header.correlation_id))

    def _hang_up(self, connection: Connection, reason: str) -> None:
        self._door.tell_bad_end(connection, f"closing the connection from {connection}: {reason}")
        self._selector.close(connection.channel_id)
        self._forget(connection.channel_id)

    def _part(self, channel_id: Hashable, reason: str) -> None:
        """Let go of a connection that has ended; how it ended is news of those alone that came no further than the door."""
        caller = self._callers.get(channel_id)
        if caller is not None and caller.connection.login is not None:
            self._door.tell_bad_end(caller.connection, f"the connection from {caller.connection} ended: {reason}")
        self._forget(channel_id)

    def _forget(self, channel_id: Hashable) -> None:
        """Whatever it waits for, nobody takes any more."""
        caller = self._callers.pop(channel_id, None)
        if caller is None:
            return
        self._door.leave(caller.connection)
        if caller.broker is not None:
            self._suspect(*caller.broker)
