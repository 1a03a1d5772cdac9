"""Keeps the controllers' ear: the broker's life in a thread with a connection of its own.

The loop may be held up, by a disk or by a large request, for longer than a heartbeat may be late; so it is not the loop that
beats. What the loop has to know of it is told to the loop, in its own thread.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from ottla.broker.controllers.node_errors import RegistrationLostError
from ottla.broker.peers.peer_connection import PeerConnection
from ottla.broker.peers.peer_errors import PeerLost
from ottla.clock import Clock
from ottla.coordination.cluster.registration import Registration
from ottla.coordination.lifecycle.broker_lifecycle import NEVER, BrokerLifecycle
from ottla.coordination.lifecycle.events import (
    Beaten,
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

log = logging.getLogger(__name__)
API_VERSIONS_VERSION = 4
REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 2
ANSWER_SECONDS = 4.5
"""Half of `broker.session.timeout.ms`: whoever is asked next still hears of the broker in time."""
LOOK_SECONDS = 0.1


class Host(Protocol):
    """The broker, as far as its life goes; each is called in the thread."""

    def recover(self) -> None: ...

    def serve(self) -> None: ...

    def end(self, error: OttlaError | None) -> None: ...


class LifecycleThread:
    """Runs a `BrokerLifecycle`."""

    def __init__(
        self,
        lifecycle: BrokerLifecycle,
        controller: Callable[[], Address | None],
        connection: PeerConnection,
        host: Host,
        clock: Clock,
        registrations: Callable[[], Mapping[int, Registration]],
    ) -> None:
        """`controller` says where the active one is, if that is known; `registrations`, in any thread, who is registered."""
        self.lifecycle = lifecycle
        self._controller = controller
        self._host = host
        self._clock = clock
        self._connection = connection
        self._registrations = registrations
        self._events: deque[Event] = deque()
        self._found = False
        self._over = False
        self._thread = threading.Thread(target=self._run, name="ottla-lifecycle", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def tell(self, event: Event) -> None:
        """Have something taken into account at once, or when who is asked has answered; may be called in any thread."""
        self._events.append(event)
        self._connection.wakeup()

    def close(self) -> None:
        """Fall silent; from another thread."""
        self._over = True
        self._connection.give_up()
        if self._thread.is_alive():
            self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while not self._over:
            try:
                if not self._found:
                    self._find()
                self._act(self._next_event())
            except Exception:
                log.exception("a step of the broker's registration or heartbeat failed; the next one follows")
                self._connection.wait(LOOK_SECONDS)

    def _find(self) -> None:
        """Ask what the cluster runs, once it is known whom to ask."""
        address = self._controller()
        if address is None:
            return
        request = ApiVersionsRequest("ottla", "0")
        try:
            answer = self._connection.ask(address, request, API_VERSIONS_VERSION, ApiVersionsResponse, ANSWER_SECONDS)
        except OttlaError as error:
            log.info("the controller at %s does not answer: %s", address, error)
            return
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        if not answer.error_code and levels:
            self._found = True
            self._events.append(ControllerFound(levels))

    def _next_event(self) -> Event:
        if not self._events:
            span = self.lifecycle.due - self._clock.monotonic()
            span = span if self._found and self.lifecycle.due < NEVER else LOOK_SECONDS
            if span > 0:
                self._connection.wait(span)
        return self._events.popleft() if self._events else TimePassed()

    def _act(self, event: Event) -> None:
        wishes = self.lifecycle.handle(event, self._clock.monotonic())
        while wishes:
            answers = [answer for wish in wishes if (answer := self._grant(wish)) is not None]
            wishes = [wish for each in answers for wish in self.lifecycle.handle(each, self._clock.monotonic())]

    def _grant(self, wish: Wish) -> Event | None:
        match wish:
            case Send():
                return self._ask(wish)
            case Recover():
                self._host.recover()
            case Serve():
                self._host.serve()
            case Note():
                log.log(logging.INFO if wish.is_expected else logging.WARNING, "%s", wish.sentence)
            case Stop():
                self._over = True
                self._host.end(None)
            case Fail():
                self._over = True
                kind = RegistrationLostError if wish.is_registration_lost else OttlaError
                self._host.end(kind(wish.sentence))
        return None

    def _ask(self, wish: Send) -> Event:
        address = self._controller()
        if address is None:
            return Unanswered()
        registers = isinstance(wish.request, BrokerRegistrationRequest)

        def still() -> bool:
            return self._controller() in (None, address)

        try:
            if registers:
                version, answer = REGISTRATION_VERSION, BrokerRegistrationResponse
                registered = self._connection.ask(address, wish.request, version, answer, ANSWER_SECONDS, still)
                if registered.error_code == ErrorCode.NOT_CONTROLLER:
                    return Unanswered()
                return Registered(registered, self._registrations())
            heard = self._connection.ask(
                address, wish.request, HEARTBEAT_VERSION, BrokerHeartbeatResponse, ANSWER_SECONDS, still
            )
            return Unanswered() if heard.error_code == ErrorCode.NOT_CONTROLLER else Beaten(heard)
        except PeerLost as error:
            log.info("the controller at %s did not answer: %s", address, error)
            return Unanswered()
