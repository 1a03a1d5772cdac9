"""A response that may be known before or after its handler returns."""

from __future__ import annotations

from ottla.broker.network_server.call import Call, Outcome
from ottla.protocol.schema import Message


class DeferredResponse:
    """The response to a call. The call can be answered directly only after its handler has returned."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._response: Message | None = None
        self._has_returned = False

    def send(self, response: Message) -> None:
        if self._has_returned:
            self._call.answer(response)
        else:
            self._response = response

    def result(self) -> Message | Outcome:
        """Return the result of the handler: the response if it is known, else LATER."""
        if self._response is not None:
            return self._response
        self._has_returned = True
        return Outcome.LATER
