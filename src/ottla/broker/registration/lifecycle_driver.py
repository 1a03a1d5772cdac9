"""Registers a broker with the active controller, and sends its heartbeats, in the event loop of the node.

    BrokerLifecycle (pure) ──► Send ──► the active controller in this process, or a PeerConnection ──► Registered, HeartbeatAnswered, LifecycleRequestFailed ──┐
           ▲                                                                                                                      │
           └──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘

Heartbeats have a connection of their own, so that they do not wait behind larger requests. A loop that is blocked for longer
than `broker.session.timeout.ms` has its broker fenced; work that can block for long runs on disk threads (decision 0132).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.event_loop.timers import Timer, Timers
from ottla.broker.metadata.node_errors import RegistrationLostError
from ottla.broker.peers.peer_errors import PeerLost
from ottla.broker.registration.controller_channel import LocalController
from ottla.clock import Clock
from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.coordination.lifecycle.broker_lifecycle import NEVER, BrokerLifecycle
from ottla.coordination.lifecycle.events import (
    ControllerElected,
    ControllerFound,
    Event,
    HeartbeatResponseReceived,
    LifecycleAction,
    LifecycleRequestFailed,
    LifecycleTick,
    Note,
    Recover,
    Registered,
    Send,
    Serve,
    Stop,
    StopBroker,
)
from ottla.coordination.quorum.observer import Address
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.broker.peers.peer_connection import PeerConnection

log = logging.getLogger(__name__)
API_VERSIONS_VERSION = 4
REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 2
ANSWER_SECONDS = 4.5
"""Half of `broker.session.timeout.ms`: the next controller still gets a heartbeat in time."""
LOOK_SECONDS = 0.1


class BrokerHost(Protocol):
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
        connect: Callable[[], PeerConnection],
        local: LocalController | None,
        host: BrokerHost,
        timers: Timers,
        clock: Clock,
        registrations: Callable[[], Mapping[int, BrokerRegistration]],
    ) -> None:
        """`leader` returns the address of the active controller, if it is known; `local` is the controller role of this node.

        `connect` makes the connection to a controller elsewhere, at first use. `registrations` returns the registered brokers.
        """
        self.lifecycle = lifecycle
        self._leader = leader
        self._connect = connect
        self._connection: PeerConnection | None = None
        self._local = local
        self._host = host
        self._timers = timers
        self._clock = clock
        self._registrations = registrations
        self._has_found = self._is_over = False
        self._requested: Address | None = None
        """The controller on another node to which the request in flight was sent."""
        self._number = 0
        """The number of the request in flight; responses to earlier ones are ignored."""
        self._is_asking = False
        self._then: Callable[[Any], None] = self._handle_heartbeat
        self._timer: Timer | None = None

    def start(self) -> None:
        self._run_timers()

    def handle_event(self, event: Event) -> None:
        """Advance the lifecycle by an event. A newly elected controller is sent the pending request."""
        if (
            isinstance(event, ControllerElected)
            and self._requested is not None
            and self._leader() not in (None, self._requested)
        ):
            self._disconnect()
            self._end_request(PeerLost("another controller was elected"), self._number)
        self._handle(event)

    def close(self) -> None:
        """Stop heartbeats; the active controller fences the broker when its session ends."""
        self._is_over = True
        self._cancel_timer()
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _handle(self, event: Event) -> None:
        if self._is_over:
            return
        try:
            for wish in self.lifecycle.handle(event, self._clock.monotonic()):
                self._execute_action(wish)
        except Exception:
            log.exception("a step of the broker's registration or heartbeat failed; the next one follows")
            self._set_timer(LOOK_SECONDS)
        else:
            self._set_timer()

    def _execute_action(self, wish: LifecycleAction) -> None:
        match wish:
            case Send():
                self._send(wish)
            case Recover():
                self._host.recover()
            case Serve():
                self._host.serve()
            case Note():
                log.log(logging.INFO if wish.is_expected else logging.WARNING, "%s", wish.text)
            case Stop():
                self._is_over = True
                self._host.end(None)
            case StopBroker():
                self._is_over = True
                kind = RegistrationLostError if wish.is_registration_lost else OttlaError
                self._host.end(kind(wish.error))

    # timer

    def _set_timer(self, seconds: float | None = None) -> None:
        """Set the timer for the lifecycle's deadline. Until a controller is found, the interval is short."""
        self._cancel_timer()
        if self._is_over or (self._is_asking and self._has_found):
            return  # the response is the next event
        now = self._clock.monotonic()
        if seconds is None:
            is_known = self._has_found and self.lifecycle.due < NEVER
            seconds = max(self.lifecycle.due - now, 0.0) if is_known else LOOK_SECONDS
        self._timer = self._timers.schedule(now + seconds, self._run_timers)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timers.cancel(self._timer)
            self._timer = None

    def _run_timers(self) -> None:
        if not self._has_found and not self._is_asking:
            self._find_controller()
        self._handle(LifecycleTick())

    # requests

    def _find_controller(self) -> None:
        """Request the finalized features from the active controller, once its address is known."""
        request = ApiVersionsRequest("ottla", "0")
        self._send_request(request, API_VERSIONS_VERSION, ApiVersionsResponse, self._handle_controller)

    def _handle_controller(self, said: Any) -> None:
        if isinstance(said, ApiVersionsResponse) and not said.error_code:
            levels = {each.name: each.max_version_level for each in said.finalized_features}
            if levels:
                self._has_found = True
                self._handle(ControllerFound(levels))

    def _send(self, wish: Send) -> None:
        if isinstance(wish.request, BrokerRegistrationRequest):
            self._send_request(
                wish.request, REGISTRATION_VERSION, BrokerRegistrationResponse, self._handle_registration
            )
        else:
            self._send_request(wish.request, HEARTBEAT_VERSION, BrokerHeartbeatResponse, self._handle_heartbeat)

    def _handle_registration(self, said: Any) -> None:
        registered = isinstance(said, BrokerRegistrationResponse)
        self._handle(Registered(said, self._registrations()) if registered else LifecycleRequestFailed())

    def _handle_heartbeat(self, said: Any) -> None:
        self._handle(
            HeartbeatResponseReceived(said) if isinstance(said, BrokerHeartbeatResponse) else LifecycleRequestFailed()
        )

    def _send_request(self, request: Message, version: int, answer: type[Message], then: Callable[[Any], None]) -> None:
        """Send a request; `then` takes the response, or anything else if there is none."""
        self._number += 1
        self._is_asking, self._then = True, then
        done = partial(self._end_request, number=self._number)
        address = self._leader()
        if self._local is not None and self._local.is_active:
            # In a callback of its own: the response may come at once, and the lifecycle is at work now.
            self._timers.schedule(self._clock.monotonic(), partial(self._local.submit, None, request, version, done))
        elif address is not None:
            from ottla.broker.peers.peer_connection import Question

            self._requested = address
            if self._connection is None:
                self._connection = self._connect()
            self._connection.send_request(Question(address, request, version, answer, done))
        else:
            self._timers.schedule(self._clock.monotonic(), partial(done, None))

    def _end_request(self, said: Any, number: int) -> None:
        if number != self._number or not self._is_asking or self._is_over:
            return
        asked, self._requested, self._is_asking = self._requested, None, False
        if isinstance(said, PeerLost):
            log.info("the controller at %s did not answer: %s", asked, said)
        elif getattr(said, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            said = None
        self._then(said)
