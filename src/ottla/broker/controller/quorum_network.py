"""Network connections of a controller: its listeners, its connections to the other voters, and probes of silent brokers.

    listeners ──► Gate (logins) ──► ControllerRequests ──► ControllerCalls
    Raft ──► ControllerPeers ──► other voters ──► news ──► Raft

The only voter of a quorum has none of this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ottla.broker.controller.active_controller import ActiveController
from ottla.broker.controller.controller_calls import ControllerCalls
from ottla.broker.controller.controller_peers import ControllerPeers
from ottla.broker.controller.controller_registration import ControllerRegistration, build_registration
from ottla.broker.controller.controller_requests import (
    ControllerRequests,
    Incarnation,
    NoScramCredentials,
    ensure_listed,
)
from ottla.broker.controller.controller_snapshots import ControllerSnapshots
from ottla.broker.controller.leaderless_quorum import LeaderlessQuorum
from ottla.broker.controller.liveness_probe import LivenessProbes
from ottla.broker.controller.quorum_replica import find_address
from ottla.broker.controller.raft_driver import RaftDriver
from ottla.broker.event_loop.timers import repeat
from ottla.broker.network_server.request_table import ListenerContext
from ottla.broker.network_server.socket_server import ServerRole, SocketServer
from ottla.broker.peers.network_partition import NetworkPartition
from ottla.broker.peers.peer_connection import PeerConnection
from ottla.broker.peers.peer_login import PeerLogins
from ottla.broker.security.authentication import Authentication
from ottla.broker.security.authentication_gate import AuthenticationGate
from ottla.broker.security.bound_listeners import BoundListeners
from ottla.broker.security.listener_security import is_loopback
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.peer_security import towards_controllers
from ottla.coordination.controller.events import BrokerProcessEnded
from ottla.coordination.quorum.observer import Address
from ottla.coordination.quorum.raft import Raft
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest
from ottla.security.channels import channel_maker

logger = logging.getLogger(__name__)
ELECTIONS = 2
"""Election rounds without a leader before the first log line about it."""
CHECK_SECONDS = 1.0
"""The interval between two checks for a leader of the quorum."""


class QuorumNetwork:
    """Belongs to the event loop of the node's `SocketServer`."""

    def __init__(
        self,
        config: BrokerConfig,
        server: SocketServer,
        listeners: BoundListeners,
        calls: ControllerCalls,
        driver: RaftDriver,
        snapshots: ControllerSnapshots,
        place: Callable[[int], Address | None],
        defer: Callable[[Callable[[], None]], None],
    ) -> None:
        """`place` returns the address of a voter, if it is known; `defer` has a callback called at the end of the turn.

        ConfigError if a listener cannot check the logins that it enables.
        """
        self._config = config
        self._server = server
        self._listeners = listeners
        self._driver = driver
        self._is_closed = False
        self._clock, self._timers = server.clock, server.timers
        self.split = NetworkPartition()
        for security in listeners.securities.values():
            ensure_listed(security)
        authentication = Authentication(
            config, listeners.securities, NoScramCredentials(), None, self._timers, self._clock, server.call_soon
        )
        most = config.socket_request_max_bytes
        self._gate = AuthenticationGate(authentication, server.selector, server.memory, self._timers, self._clock, most)
        self._warn_of_open_listeners()
        self._connect_to_voters(place)
        self._absences = LivenessProbes(lambda who: server.call_soon(lambda: self._report_ended(who)))
        self._leaderless = make_leaderless_quorum(driver.raft, config, self._clock.monotonic())
        request = build_registration(config, driver.raft.own_entry)
        self._introduction = ControllerRegistration(request, driver, self._introducing_peers, snapshots)
        about_brokers = self._start_probe, self._check_duplicate
        self._requests = ControllerRequests(calls, authentication, config.slow_request_ms, *about_brokers, defer)

    def open(self, role: ServerRole) -> None:
        """Have the loop drive `role`, and accept connections. ConfigError if an address is in use."""
        self._server.add_role(
            role, self._listeners.names, lambda name: ListenerContext(name, self._gate, self._requests, no_delay)
        )
        self._listeners.open()

    def start(self) -> None:
        """Start periodic work: the registration of this controller, and the check for a leader."""
        self._gate.start_timer(self._server.connections.disconnect)
        self._introduction.schedule(self._timers, self._clock)
        self._watch_for_leader()

    def receive(self, now: float) -> None:
        """Handle what other voters sent."""
        news = self.peers.news
        while news:
            self._leaderless.handle_response(news[0], now)
            self._driver.step(news.popleft())

    def close(self) -> None:
        """Refuse connections, and close those to and from other nodes."""
        self._is_closed = True
        self._listeners.close()
        self._introduction.close()
        self.peers.close()
        self._server.connections.close_listeners(self._listeners.names.values())
        self._gate.close()

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
        self.peers = ControllerPeers(lambda node: PeerConnection(f"{name}-{node}", *how), place)
        self._introducing_peers = ControllerPeers(lambda node: PeerConnection(f"{name}-{node}-aside", *how), place)

    def _watch_for_leader(self) -> None:
        """Log at an interval why there is no leader.

        A late check means that the whole process was delayed, so the deadlines are extended by that time.
        """
        due = self._clock.monotonic()

        def check() -> None:
            nonlocal due
            now = self._clock.monotonic()
            late, due = now - due, now + CHECK_SECONDS
            self._leaderless.exclude_suspension(late)
            if (sentence := self._leaderless.check(now)) is not None:
                logger.warning(sentence)

        repeat(self._timers, self._clock, "leader of the quorum", check, lambda: CHECK_SECONDS, first_seconds=0)

    def _warn_of_open_listeners(self) -> None:
        """Log once that unauthenticated hosts could change the quorum."""
        securities = self._listeners.securities
        open_hosts = [
            each.host or "every address"
            for each in self._config.endpoints()
            if not securities[each.name].authenticates and not is_loopback(each.host)
        ]
        if open_hosts:
            logger.warning(
                "every host that can reach this controller through %s can request votes and change the voters: use SSL with "
                "ssl.client.auth=required, or a network of controllers and brokers only",
                " and ".join(open_hosts),
            )

    # probes of silent brokers

    def check_silent_brokers(self, term: ActiveController) -> None:
        """Probe the brokers that have not sent a heartbeat to this new active controller."""
        if term is self._driver.term:
            for broker in term.machine.brokers_without_heartbeat():
                self._start_probe((broker.broker_id, broker.epoch))

    def _check_duplicate(self, request: BrokerRegistrationRequest) -> None:
        """Probe the earlier incarnation of a broker, if its session makes the registration a duplicate."""
        term = self._driver.term
        known = None if term is None else term.machine.metadata.registrations.get(request.broker_id)
        if known is not None and not known.fenced:
            self._start_probe((request.broker_id, known.epoch))

    def _start_probe(self, incarnation: Incarnation) -> None:
        """Probe a broker that has disconnected or is silent."""
        if self._is_closed:
            return
        broker_id, epoch = incarnation
        term = self._driver.term
        known = None if term is None else term.machine.metadata.registrations.get(broker_id)
        if known is None or known.epoch != epoch or not known.listeners:
            return
        place = known.listeners[0].host, known.listeners[0].port
        if not self.split.is_hidden(place):
            self._absences.start_probe(incarnation, *place)

    def _report_ended(self, incarnation: Incarnation) -> None:
        self._driver.decide(BrokerProcessEnded(*incarnation), lambda _: None)


def no_delay(host: str, now: float) -> float:
    """Return 0: controllers do not limit how often an address connects."""
    return 0.0


def make_leaderless_quorum(raft: Raft, config: BrokerConfig, now: float) -> LeaderlessQuorum:
    """Return the check for a leader."""
    spans = config.controller_quorum_fetch_timeout_ms + config.controller_quorum_election_timeout_ms
    return LeaderlessQuorum(raft, partial(find_address, raft, config), ELECTIONS * spans / 1000, now)
