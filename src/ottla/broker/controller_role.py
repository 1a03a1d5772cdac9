"""The controller role of a node: its replica of the quorum, and the active controller while this node leads it.

    SocketServer ──► ControllerRequests ──► ControllerCalls ──► RaftDriver ──► Raft, ActiveController ──► QuorumLog
         │                                                         ▲   │
         └──► responses of other voters (ControllerPeers) ─────────┘   └──► requests to other voters

It votes and replicates the metadata log. While it leads, it is the active controller, which registers brokers and decides
every change of metadata. The log is flushed within the loop: nothing may be answered before that.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

from ottla.broker.authentication.authentication import Authentication
from ottla.broker.authentication.listener_security import is_loopback
from ottla.broker.controller_access import asker_of
from ottla.broker.controller_calls import ControllerCalls
from ottla.broker.controller_requests import ControllerRequests, Incarnation, NoPasswords, ensure_listed
from ottla.broker.controllers.absences import Absences
from ottla.broker.controllers.active_controller import ActiveController
from ottla.broker.controllers.controller_peers import ControllerPeers
from ottla.broker.controllers.controller_snapshots import ControllerSnapshots
from ottla.broker.controllers.introduction import Introduction, introduction_of
from ottla.broker.controllers.local_metadata import LocalMetadata
from ottla.broker.controllers.node_errors import explain_unwritable_metadata
from ottla.broker.controllers.quorum_log import QuorumLog
from ottla.broker.controllers.quorum_node import fixed_voters, leaderless_of, make_raft, place_of
from ottla.broker.controllers.raft_driver import RaftDriver
from ottla.broker.controllers.terms import terms
from ottla.broker.disk import Disk
from ottla.broker.gate import Gate
from ottla.broker.machines.observed_snapshots import snapshot_rules
from ottla.broker.peers.peer_connection import PeerConnection
from ottla.broker.peers.peer_login import PeerLogins
from ottla.broker.peers.split import Split
from ottla.broker.requests.connection import Connection
from ottla.broker.requests.request_table import Door
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.peer_security import towards_controllers
from ottla.broker.socket_server import BoundListeners, SocketServer
from ottla.broker.timers import repeat
from ottla.coordination.controller.events import BrokerGone
from ottla.coordination.quorum.events import ShutDown, Tick
from ottla.coordination.quorum.observer import Address
from ottla.errors import OttlaError
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest
from ottla.protocol.schema import Message
from ottla.security.channels import channel_maker
from ottla.storage.directory.data_directory import DataDirectory

logger = logging.getLogger(__name__)
RESIGNING_SECONDS = 1.0
"""The longest time that a leader which stops waits for other voters to learn it."""
HEARTBEATS = 1.5
"""The heartbeat intervals in which each broker has to report to a new active controller; after that it is checked."""
LOOK_SECONDS = 1.0
"""The interval between two checks for a leader of the quorum."""
LEAST_SECONDS = 0.001
"""The least pause before a timeout of the quorum: it must not keep the loop from its sockets."""
T = TypeVar("T")


class ControllerRole:
    """A controller over a data directory that is open and locked. Belongs to the loop of the node's `SocketServer`."""

    def __init__(
        self,
        config: BrokerConfig,
        server: SocketServer,
        listeners: BoundListeners,
        directory: DataDirectory,
        fail: Callable[[OttlaError], None],
    ) -> None:
        """Read the metadata log and start listening. `fail` stops the node and states why."""
        self._config = config
        self._server = server
        self._listeners = listeners
        self._stop_node = fail
        self._has_failed = self._is_closed = False
        self._local: LocalMetadata | None = None
        self._deferred: deque[Callable[[], None]] = deque()
        """Responses that are given at the end of the turn, when the state machine of the quorum is at rest."""
        self._clock, self._timers = server.clock, server.timers
        self._disk = Disk(server.call_soon, threads=1)
        self.split = Split()
        self._calls = ControllerCalls(config, self._clock)
        with ExitStack() as undo:
            for security in listeners.securities.values():
                ensure_listed(security)
            authentication = Authentication(
                config, listeners.securities, NoPasswords(), None, self._timers, self._clock, server.call_soon
            )
            most = config.socket_request_max_bytes
            self._gate = Gate(authentication, server.selector, server.memory, self._timers, self._clock, most)
            undo.callback(self._gate.close)
            self._warn_of_open_listeners()
            log = QuorumLog.open(directory, self._clock, fixed_voters(config))
            raft = make_raft(config, directory.meta, log, self._clock, random.random(), listeners.bound)
            self._place = partial(place_of, raft, config)
            self._connect_to_voters(self._place)
            make_term = terms(config, directory, log, self._clock, self._timers, self.stop_on_failure)
            begin = partial(self._begin_term, make_term)
            self.driver = RaftDriver(raft, log, self, self._clock, random.random, begin, self.stop_on_failure)
            self._absences = Absences(lambda who: server.call_soon(partial(self._report_gone, who)))
            self._leaderless = leaderless_of(raft, config, self._clock.monotonic())
            rules, submit = snapshot_rules(config), self._disk.submit
            self._snapshots = ControllerSnapshots(log, rules, self._clock, submit, self.driver.look_anew)
            self.driver.snapshots = self._snapshots
            told = introduction_of(config, raft.own_entry)
            self._introduction = Introduction(told, self.driver, self._introducing_peers, self._snapshots)
            self._calls.driver = self.driver
            about_brokers = self._suspect, self._check_duplicate
            requests = ControllerRequests(
                self._calls, authentication, config.slow_request_ms, *about_brokers, self._deferred.append
            )
            server.add_role(self, listeners, lambda name: Door(name, self._gate, requests, no_delay))
            listeners.open()
            undo.pop_all()

    def _connect_to_voters(self, place: Callable[[int], Address | None]) -> None:
        security = towards_controllers(self._config)
        how = (
            self._server.selector,
            self._timers,
            self._clock,
            security,
            PeerLogins(security),
            channel_maker(security.config),
            self.split,
        )
        name = f"ottla-controller-{self._config.node_id}"
        self._peers = ControllerPeers(lambda node: PeerConnection(f"{name}-{node}", *how), place)
        self._introducing_peers = ControllerPeers(lambda node: PeerConnection(f"{name}-{node}-aside", *how), place)

    def local_metadata(self) -> LocalMetadata:
        """Return the committed metadata for the broker role of this node. OttlaError if it cannot be read."""
        self._local = LocalMetadata(self, self._snapshots, self.driver.raft, self._place)
        return self._local

    def start(self) -> None:
        """Take part in the quorum."""
        self.driver.step(Tick())
        self._gate.watch(self._server.connections.hang_up)
        self._introduction.begin(self._timers, self._clock)
        self._expire_tokens()
        self._watch_for_leader()

    def resign(self) -> None:
        """Give up leadership if this node leads, and have the other voters learn it; serve them meanwhile, for a second at most."""
        deadline = self._clock.monotonic() + RESIGNING_SECONDS
        self._timers.at(deadline, self._server.selector.wakeup)
        self.driver.step(ShutDown())
        while not self._has_failed and self.driver.raft.is_awaited and self._clock.monotonic() < deadline:
            self._server.turn()

    def close(self) -> None:
        """Refuse and close connections, and end what runs on other threads."""
        self._is_closed = True
        self._server.remove_role(self)
        self._listeners.close()
        self._introduction.close()
        self._peers.close()
        self._server.connections.leave_all(self._listeners.names.values())
        self._gate.close()
        self._disk.close()

    def stop_on_failure(self, work: Callable[[], T]) -> T | None:
        """Call `work`. If it fails, the state of the quorum is in doubt: stop the node, and do no further work."""
        if self._has_failed:
            return None
        try:
            return work()
        except OttlaError as error:
            failure = explain_unwritable_metadata("controller", error)
        except Exception as error:
            failure = OttlaError(f"the controller of this node failed: {error!r}; the node stops")
            failure.__cause__ = error
        self._has_failed = True
        self._stop_node(failure)
        return None

    # for the driver

    def send(self, node: int, number: int, request: Message) -> None:
        self._peers.ask(node, number, request)

    def reply(self, ticket: int, response: Message) -> None:
        self._calls.reply(ticket, response)

    # for the broker role of this node

    @property
    def is_active(self) -> bool:
        """True if this node is the active controller."""
        return self.driver.term is not None

    def submit(
        self, connection: Connection | None, request: Message, version: int, done: Callable[[Message | None], None]
    ) -> None:
        """Decide a request of a client, or of the broker role itself if `connection` is None.

        `done` is called at the end of a turn: with the response, or with None if this is not the active controller.
        """
        respond = lambda response: self._deferred.append(partial(done, response))  # noqa: E731
        refuse = lambda _: self._deferred.append(partial(done, None))  # noqa: E731
        if connection is None:
            self._calls.take_of_broker(request, version, respond, refuse)
        else:
            self._calls.take(asker_of(connection), request, version, respond, refuse)

    # for the loop

    def patience(self, now: float) -> float | None:
        if self._has_failed:
            return None
        if self._peers.news or self._deferred or self._snapshots.unfinished:
            return 0.0
        return max(self.driver.wake_at - now, LEAST_SECONDS)

    def receive(self, now: float) -> None:
        """Handle what other voters sent. What came while this process was suspended counts before a timeout does."""
        news = self._peers.news
        while news:
            self._leaderless.heard(news[0], now)
            self.driver.step(news.popleft())

    def go_on(self, now: float) -> None:
        if self._snapshots.unfinished:
            self.stop_on_failure(self._snapshots.go_on)
        self.driver.look()
        self.receive(now)
        self._publish()
        for _ in range(len(self._deferred)):
            self._deferred.popleft()()
        if self.driver.wake_at <= now:
            self.driver.step(Tick())

    def _publish(self) -> None:
        """Have the broker role of this node apply what was committed, before responses are given."""
        if self._local is None or self._has_failed:
            return
        try:
            self._local.publish()
        except OttlaError as error:
            self._stop_node(explain_unwritable_metadata("broker", error))

    # what is repeated

    def _expire_tokens(self) -> None:
        """Delete expired delegation tokens at an interval, if there can be any."""
        if self._config.delegation_token_secret_key is not None:
            span = self._config.delegation_token_expiry_check_interval_ms / 1000
            repeat(
                self._timers,
                self._clock,
                "delegation.token.expiry.check.interval.ms",
                self._calls.sweep_tokens,
                lambda: span,
                first_seconds=0,
            )

    def _watch_for_leader(self) -> None:
        """Log at an interval why there is no leader. A check that comes late was delayed together with everything else."""
        due = self._clock.monotonic()

        def look() -> None:
            nonlocal due
            now = self._clock.monotonic()
            late, due = now - due, now + LOOK_SECONDS
            self._leaderless.stood_still(late)
            if (sentence := self._leaderless.look(now)) is not None:
                logger.warning(sentence)

        repeat(self._timers, self._clock, "leader of the quorum", look, lambda: LOOK_SECONDS, first_seconds=0)

    def _warn_of_open_listeners(self) -> None:
        """Log once that strangers could vote."""
        securities = self._listeners.securities
        open_hosts = [
            each.host or "every address"
            for each in self._config.endpoints()
            if not securities[each.name].identifies and not is_loopback(each.host)
        ]
        if open_hosts:
            logger.warning(
                "whoever can reach this controller by %s may ask it for votes and change who votes: have its listener speak SSL with "
                "ssl.client.auth=required, or keep it in a network that only controllers and brokers are in",
                " and ".join(open_hosts),
            )

    # brokers that may be gone

    def _begin_term(self, make: Callable[[int], ActiveController], epoch: int) -> ActiveController:
        """Begin a term as the active controller, in which every live broker reports soon."""
        term = make(epoch)
        seconds = self._config.broker_heartbeat_interval_ms / 1000 * HEARTBEATS
        self._timers.at(self._clock.monotonic() + seconds, lambda: self._check_silent_brokers(term))
        return term

    def _check_silent_brokers(self, term: ActiveController) -> None:
        if term is self.driver.term:
            for broker in term.machine.unheard():
                self._suspect((broker.broker_id, broker.epoch))

    def _check_duplicate(self, request: BrokerRegistrationRequest) -> None:
        """Check whether the process of an earlier incarnation, which has a session, has ended."""
        term = self.driver.term
        known = None if term is None else term.machine.metadata.registrations.get(request.broker_id)
        if known is not None and not known.fenced:
            self._suspect((request.broker_id, known.epoch))

    def _suspect(self, who: Incarnation) -> None:
        """Find out whether the process of a broker has ended, which has disconnected or is silent."""
        if self._is_closed:
            return
        broker_id, epoch = who
        term = self.driver.term
        known = None if term is None else term.machine.metadata.registrations.get(broker_id)
        if known is None or known.epoch != epoch or not known.listeners:
            return
        place = known.listeners[0].host, known.listeners[0].port
        if not self.split.hides(place):
            self._absences.suspect(who, *place)

    def _report_gone(self, who: Incarnation) -> None:
        self.driver.decide(BrokerGone(*who), lambda _: None)


def no_delay(host: str, now: float) -> float:
    """Return 0: controllers do not limit how often an address connects."""
    return 0.0
