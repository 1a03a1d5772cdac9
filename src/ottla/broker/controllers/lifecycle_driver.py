"""Registers a broker with the active controller, and sends its heartbeats, in the event loop of the node.

    BrokerLifecycle (pure) ──► Send ──► the active controller in this process, or a PeerConnection ──► Registered, Beaten, Unanswered ──┐
           ▲                                                                                                                      │
           └──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘

Heartbeats have a connection of their own, so that they do not wait behind larger requests. A loop that is blocked for longer
than `broker.session.timeout.ms` has its broker fenced; work that can block for long runs on disk threads (decision 0132).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from ottla.broker.controllers.controller_channel import LocalController
from ottla.broker.controllers.node_errors import RegistrationLostError
from ottla.broker.peers.peer_connection import PeerConnection, Question
from ottla.broker.peers.peer_errors import PeerLost
from ottla.broker.timers import Timer, Timers
from ottla.clock import Clock
from ottla.coordination.cluster.registration import Registration
from ottla.coordination.lifecycle.broker_lifecycle import NEVER, BrokerLifecycle
from ottla.coordination.lifecycle.events import (
    Beaten,
    ControllerElected,
    ControllerFound,
    Event,
    Fail,
    Note,
    Recover,
    Registered,
    Send,
    Serve,
    Stop,
    TimePassed,
    Unanswered,
    Wish,
)
from ottla.coordination.quorum.observer import Address
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.protocol.schema import Message

log = logging.getLogger(__name__)
API_VERSIONS_VERSION = 4
REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 2
ANSWER_SECONDS = 4.5
"""Half of `broker.session.timeout.ms`: the next controller still gets a heartbeat in time."""
LOOK_SECONDS = 0.1


class Host(Protocol):
    """The parts of a broker that its lifecycle changes."""

    def recover(self) -> None: ...

    def serve(self) -> None: ...

    def end(self, error: OttlaError | None) -> None: ...


class LifecycleDriver:
    """Runs a `BrokerLifecycle`. Belongs to the loop."""

    def __init__(
        self,
        lifecycle: BrokerLifecycle,
        leader: Callable[[], Address | None],
        connection: PeerConnection,
        local: LocalController | None,
        host: Host,
        timers: Timers,
        clock: Clock,
        registrations: Callable[[], Mapping[int, Registration]],
    ) -> None:
        """`leader` returns the address of the active controller, if it is known; `local` is the controller role of this node.

        `registrations` returns the registered brokers.
        """
        self.lifecycle = lifecycle
        self._leader = leader
        self._connection = connection
        self._local = local
        self._host = host
        self._timers = timers
        self._clock = clock
        self._registrations = registrations
        self._has_found = self._is_over = False
        self._asked: Address | None = None
        """The controller elsewhere that has a request now."""
        self._number = 0
        """The number of the request under way; responses to earlier ones are ignored."""
        self._is_asking = False
        self._then: Callable[[Any], None] = self._beaten
        self._timer: Timer | None = None

    def start(self) -> None:
        self._look()

    def tell(self, event: Event) -> None:
        """Advance the lifecycle by an event. A new controller gets the request that an old one has not answered."""
        if (
            isinstance(event, ControllerElected)
            and self._asked is not None
            and self._leader() not in (None, self._asked)
        ):
            self._connection.close()
            self._end_request(PeerLost("another controller was elected"), self._number)
        self._handle(event)

    def close(self) -> None:
        """Stop heartbeats; the active controller fences the broker when its session ends."""
        self._is_over = True
        self._cancel_timer()
        self._connection.close()

    def _handle(self, event: Event) -> None:
        if self._is_over:
            return
        try:
            for wish in self.lifecycle.handle(event, self._clock.monotonic()):
                self._grant(wish)
        except Exception:
            log.exception("a step of the broker's registration or heartbeat failed; the next one follows")
            self._set_timer(LOOK_SECONDS)
        else:
            self._set_timer()

    def _grant(self, wish: Wish) -> None:
        match wish:
            case Send():
                self._send(wish)
            case Recover():
                self._host.recover()
            case Serve():
                self._host.serve()
            case Note():
                log.log(logging.INFO if wish.is_expected else logging.WARNING, "%s", wish.sentence)
            case Stop():
                self._is_over = True
                self._host.end(None)
            case Fail():
                self._is_over = True
                kind = RegistrationLostError if wish.is_registration_lost else OttlaError
                self._host.end(kind(wish.sentence))

    # when to look again

    def _set_timer(self, seconds: float | None = None) -> None:
        """Look again when the lifecycle is due; until a controller is found, at a short interval."""
        self._cancel_timer()
        if self._is_over or (self._is_asking and self._has_found):
            return  # the response is the next event
        now = self._clock.monotonic()
        if seconds is None:
            is_known = self._has_found and self.lifecycle.due < NEVER
            seconds = max(self.lifecycle.due - now, 0.0) if is_known else LOOK_SECONDS
        self._timer = self._timers.at(now + seconds, self._look)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timers.cancel(self._timer)
            self._timer = None

    def _look(self) -> None:
        if not self._has_found and not self._is_asking:
            self._find()
        self._handle(TimePassed())

    # requests

    def _find(self) -> None:
        """Ask the active controller which features are finalized, once it is known which node that is."""
        request = ApiVersionsRequest("ottla", "0")
        self._ask(request, API_VERSIONS_VERSION, ApiVersionsResponse, self._found)

    def _found(self, said: Any) -> None:
        if isinstance(said, ApiVersionsResponse) and not said.error_code:
            levels = {each.name: each.max_version_level for each in said.finalized_features}
            if levels:
                self._has_found = True
                self._handle(ControllerFound(levels))

    def _send(self, wish: Send) -> None:
        if isinstance(wish.request, BrokerRegistrationRequest):
            self._ask(wish.request, REGISTRATION_VERSION, BrokerRegistrationResponse, self._registered)
        else:
            self._ask(wish.request, HEARTBEAT_VERSION, BrokerHeartbeatResponse, self._beaten)

    def _registered(self, said: Any) -> None:
        registered = isinstance(said, BrokerRegistrationResponse)
        self._handle(Registered(said, self._registrations()) if registered else Unanswered())

    def _beaten(self, said: Any) -> None:
        self._handle(Beaten(said) if isinstance(said, BrokerHeartbeatResponse) else Unanswered())

    def _ask(self, request: Message, version: int, answer: type[Message], then: Callable[[Any], None]) -> None:
        """Send a request; `then` takes the response, or anything else if there is none."""
        self._number += 1
        self._is_asking, self._then = True, then
        done = partial(self._end_request, number=self._number)
        address = self._leader()
        if self._local is not None and self._local.is_active:
            self._local.submit(None, request, version, done)
        elif address is not None:
            self._asked = address
            self._connection.ask(Question(address, request, version, answer, done))
        else:
            self._timers.at(self._clock.monotonic(), partial(done, None))

    def _end_request(self, said: Any, number: int) -> None:
        if number != self._number or not self._is_asking or self._is_over:
            return
        asked, self._asked, self._is_asking = self._asked, None, False
        if isinstance(said, PeerLost):
            log.info("the controller at %s did not answer: %s", asked, said)
        elif getattr(said, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            said = None
        self._then(said)
