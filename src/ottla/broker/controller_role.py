"""The controller role of a node: its replica of the quorum, and the active controller while this node leads it.

    SocketServer ──► ControllerRequests ──► ControllerCalls ──► RaftDriver ──► Raft, ActiveController ──► QuorumLog
         │                                                         ▲   │
         └──► responses of other voters (QuorumNetwork) ───────────┘   └──► requests to other voters

It votes and replicates the metadata log. While it leads, it is the active controller, which registers brokers and decides
every change of metadata. The log is flushed within the loop: nothing may be answered before that.

The only voter of a quorum has no listener and no `QuorumNetwork`: its broker role calls it directly. Everything else is the same.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ottla.broker.controller.active_controller import ActiveController
from ottla.broker.controller.asker import read_requester
from ottla.broker.controller.controller_activation import make_activation
from ottla.broker.controller.controller_calls import ControllerCalls
from ottla.broker.controller.controller_snapshots import ControllerSnapshots
from ottla.broker.controller.published_metadata import PublishedMetadata
from ottla.broker.controller.quorum_log import QuorumLog
from ottla.broker.controller.quorum_replica import find_address, fixed_voters, make_raft, sole_voter
from ottla.broker.controller.raft_driver import RaftDriver
from ottla.broker.event_loop.disk import Disk
from ottla.broker.event_loop.timers import repeat
from ottla.broker.metadata.node_errors import explain_unwritable_metadata
from ottla.broker.metadata.observed_snapshots import snapshot_rules
from ottla.broker.network_server.call import Call
from ottla.broker.network_server.socket_server import SocketServer
from ottla.broker.security.bound_listeners import BoundListeners
from ottla.broker.settings.config import BrokerConfig
from ottla.coordination.quorum.events import ShutDown, Tick
from ottla.errors import OttlaError
from ottla.protocol.schema import Message
from ottla.storage.directory.data_directory import DataDirectory

if TYPE_CHECKING:
    from ottla.broker.controller.quorum_network import QuorumNetwork
    from ottla.broker.peers.network_partition import NetworkPartition
    from ottla.broker.security.audit_log import AuditLog

RESIGNING_SECONDS = 1.0
"""The maximum time for which a leader that stops waits until other voters have acknowledged it."""
HEARTBEATS = 1.5
"""The heartbeat intervals after which a new active controller probes brokers that have sent none."""
LEAST_SECONDS = 0.001
"""The minimum pause before a timeout of the quorum: it must not keep the loop from its sockets."""
T = TypeVar("T")


class ControllerRole:
    """A controller over a data directory that is open and locked. Belongs to the loop of the node's `SocketServer`."""

    def __init__(
        self,
        config: BrokerConfig,
        server: SocketServer,
        listeners: BoundListeners | None,
        directory: DataDirectory,
        fail: Callable[[OttlaError], None],
        audit: AuditLog | None,
    ) -> None:
        """Read the metadata log and start listening. `fail` stops the node and states why.

        `listeners` is None for the only voter: no other node connects to it. `audit` is the log of authorization decisions.
        """
        self._config = config
        self._server = server
        self._stop_node = fail
        self._has_failed = self._is_publishing = False
        self._local: PublishedMetadata | None = None
        self._deferred: deque[Callable[[], None]] = deque()
        """Responses that are given at the end of the turn, when the state machine of the quorum is at rest."""
        self._clock, self._timers = server.clock, server.timers
        self._disk = Disk(server.call_soon, threads=1)
        self._network: QuorumNetwork | None = None
        with ExitStack() as undo:
            log = QuorumLog.open(
                directory,
                self._clock,
                fixed_voters(config),
                sole_voter=sole_voter(config, directory.meta),
                is_durable=bool(config.log_dirs),
            )
            bound = {} if listeners is None else listeners.bound
            raft = make_raft(config, directory.meta, log, self._clock, random.random(), bound)
            self._place = partial(find_address, raft, config)
            make_term = make_activation(config, directory, log, self._clock, self._timers, self.stop_on_failure)
            begin = partial(self._start_term, make_term)
            rules, submit = snapshot_rules(config), self._disk.submit
            self._snapshots = ControllerSnapshots(log, rules, self._clock, submit, self._handle_written_snapshot)
            of_term = random.random, begin, self.stop_on_failure
            self.driver = RaftDriver(raft, log, self._snapshots, self, self._clock, *of_term)
            self._calls = ControllerCalls(config, self.driver, self._snapshots, self._clock, audit)
            if listeners is not None:
                from ottla.broker.controller.quorum_network import QuorumNetwork  # the only voter does not load it

                around = self._calls, self.driver, self._snapshots, self._place, self._deferred.append
                self._network = QuorumNetwork(config, server, listeners, *around)
                undo.callback(self._network.close)
                self._network.open(self)
            else:
                server.add_silent_role(self)
            undo.pop_all()

    @property
    def network_partition(self) -> NetworkPartition | None:
        """The nodes that are hidden for a test; None if there is no connection to any."""
        return None if self._network is None else self._network.split

    def local_metadata(self) -> PublishedMetadata:
        """Return the committed metadata for the broker role of this node. OttlaError if it cannot be read."""
        self._local = PublishedMetadata(self, self._snapshots, self.driver.raft, self._place)
        return self._local

    def start(self) -> None:
        """Start to take part in the quorum."""
        self.driver.step(Tick())
        if self._network is not None:
            self._network.start()
        self._expire_tokens()

    def resign(self) -> None:
        """Resign if this node leads, and serve the other voters until they acknowledge it, for a second at most."""
        if self._network is None:
            return
        deadline = self._clock.monotonic() + RESIGNING_SECONDS
        self._timers.schedule(deadline, self._server.selector.wakeup)
        self.driver.step(ShutDown())
        while not self._has_failed and self.driver.raft.is_awaited and self._clock.monotonic() < deadline:
            self._server.turn()

    def close(self) -> None:
        """Refuse and close connections, and end what runs on other threads."""
        self._server.remove_role(self)
        if self._network is not None:
            self._network.close()
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
        assert self._network is not None, "the only voter sends no request"
        self._network.peers.send_request(node, number, request)

    def reply(self, ticket: int, response: Message) -> None:
        self._calls.reply(ticket, response)

    # for the snapshots

    def _handle_written_snapshot(self) -> None:
        self.driver.report_log()

    # for the broker role of this node

    @property
    def is_active(self) -> bool:
        """True if this node is the active controller."""
        return self.driver.term is not None

    def submit(self, call: Call | None, request: Message, version: int, done: Callable[[Message | None], None]) -> None:
        """Decide a request of a client, or of the broker role itself if `call` is None.

        `done` is called with the response, or with None if this is not the active controller: before `submit` returns if the
        decision is committed by then, as that of the only voter is, and at the end of a turn otherwise.
        """
        responses: list[Message | None] = []
        # While a change is published its parts are at work, and must not be called again.
        is_late = self._is_publishing

        def respond(response: Message | None) -> None:
            if is_late:
                self._deferred.append(partial(done, response))
            else:
                responses.append(response)

        refuse = lambda _: respond(None)  # noqa: E731
        if call is None:
            self._calls.handle_broker_request(request, version, respond, refuse)
        else:
            self._calls.handle_client_request(read_requester(call), request, version, respond, refuse)
        is_late = True
        if responses:
            self._publish()
            done(responses[0])

    # for the loop

    def time_until_next(self, now: float) -> float | None:
        if self._has_failed:
            return None
        has_news = self._network is not None and self._network.peers.news
        if has_news or self._deferred or self._snapshots.has_unapplied:
            return 0.0
        return max(self.driver.wake_at - now, LEAST_SECONDS)

    def receive(self, now: float) -> None:
        """Handle messages from other voters.

        Messages that arrived while this process was suspended are handled before timeouts.
        """
        if self._network is not None:
            self._network.receive(now)

    def continue_work(self, now: float) -> None:
        if self._snapshots.has_unapplied:
            self.stop_on_failure(self._snapshots.continue_work)
        self.driver.report_appended()
        self.receive(now)
        self._publish()
        for _ in range(len(self._deferred)):
            self._deferred.popleft()()
        if self.driver.wake_at <= now:
            self.driver.step(Tick())

    def _publish(self) -> None:
        """Have the broker role of this node apply what was committed, before responses are given."""
        if self._local is None or self._has_failed or self._is_publishing:
            return
        self._is_publishing = True
        try:
            self._local.publish()
        except OttlaError as error:
            self._stop_node(explain_unwritable_metadata("broker", error))
        finally:
            self._is_publishing = False

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

    def _start_term(self, make: Callable[[int], ActiveController], epoch: int) -> ActiveController:
        """Start a term as the active controller. Every live broker sends it a heartbeat soon."""
        term = make(epoch)
        if self._network is not None:
            check = self._network.check_silent_brokers
            seconds = self._config.broker_heartbeat_interval_ms / 1000 * HEARTBEATS
            self._timers.schedule(self._clock.monotonic() + seconds, lambda: check(term))
        return term
