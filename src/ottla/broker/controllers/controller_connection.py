"""One conversation with whichever controller it is by now: a question, then its answer. For one thread."""

from __future__ import annotations

from typing import TypeVar

from ottla.clock import Clock
from ottla.coordination.quorum.observer import Address
from ottla.errors import OttlaError
from ottla.network.selector import Selector
from ottla.protocol.conversation import decode_response, encode_request
from ottla.protocol.schema import Message

M = TypeVar("M", bound=Message)
CONNECT_SECONDS = 5.0


class ControllerLost(OttlaError):
    """Nobody answered; why, it says."""


class ControllerConnection:
    """Connects when something is asked, and again after the address has changed or the connection ended."""

    def __init__(self, client_id: str, clock: Clock) -> None:
        self._client_id = client_id
        self._clock = clock
        self._selector = Selector(clock=clock)
        self._address: Address | None = None
        self._correlation_id = 0
        self._closed = False

    def ask(self, address: Address, request: Message, version: int, answer: type[M], seconds: float) -> M:
        """The answer; ControllerLost where none comes in time."""
        deadline = self._clock.monotonic() + seconds
        if address != self._address:
            self._hang_up()
            self._address = address
            self._selector.connect("controller", address.host, address.port, timeout=min(seconds, CONNECT_SECONDS))
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        self._selector.send("controller", encode_request(request, version, self._correlation_id, self._client_id))
        frame = self._frame(deadline)
        correlation_id, message = decode_response(answer, version, frame)
        if correlation_id != self._correlation_id:
            self._hang_up()
            raise ControllerLost(f"{address} answered {correlation_id} where {self._correlation_id} was due")
        return message

    def wait(self, seconds: float | None) -> None:
        """Do nothing for so long, or until `wakeup`; the end of the connection is noticed."""
        self._selector.poll(seconds)
        if self._selector.disconnected:
            self._address = None

    def wakeup(self) -> None:
        """End the present or the next `wait`; from any thread."""
        self._selector.wakeup()

    def give_up(self) -> None:
        """Have whoever asks be answered with ControllerLost, from now on; from any thread."""
        self._closed = True
        self._selector.wakeup()

    def close(self) -> None:
        self._selector.close_all()

    def _frame(self, deadline: float) -> memoryview:
        while True:
            left = deadline - self._clock.monotonic()
            if self._closed or left <= 0:
                self._hang_up()
                raise ControllerLost("nothing came in time")
            self._selector.poll(left)
            for _, frame in self._selector.completed_receives:
                return frame
            for reason in self._selector.disconnected.values():
                self._address = None
                raise ControllerLost(reason or "the controller closed the connection")

    def _hang_up(self) -> None:
        if self._address is not None:
            self._selector.close("controller")
            self._address = None
