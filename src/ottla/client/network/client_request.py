"""A request to a broker, and its result."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

LOG = logging.getLogger(__name__)
NOT_SENT = -1


class ClientResponse:
    """A response, or the reason why there is none."""

    __slots__ = ("error", "message", "node_id", "reason", "received", "request", "version")

    def __init__(
        self,
        node_id: int,
        request: ClientRequest,
        received: float,
        *,
        message: Any = None,
        version: int = -1,
        reason: str | None = None,
        error: Exception | None = None,
    ) -> None:
        self.node_id = node_id
        self.request = request
        self.received = received
        self.message = message
        """The response message; None without one (also if none was expected)."""
        self.version = version
        """The version of the request and of the response."""
        self.reason = reason
        """The reason if the connection ended before the response arrived, otherwise None."""
        self.error = error
        """An error that makes this request impossible with this broker, on any connection."""

    @property
    def disconnected(self) -> bool:
        """True if the response was lost with the connection."""
        return self.reason is not None

    def complete(self) -> None:
        """Call the request's completion once. Its errors are logged, so that other responses are still handled."""
        request = self.request
        # The object that made the request often holds the completion as well. The reference is dropped here, so that
        # the garbage collector is not needed to free either, or the frame of the response.
        completion, request.completion = request.completion, ignore_response
        try:
            completion(self)
        except Exception:
            LOG.exception("handling a response failed")


Completion = Callable[[ClientResponse], None]


def ignore_response(response: ClientResponse) -> None:
    """Do nothing: the completion of a request that is complete already."""


class ClientRequest:
    """A message for a broker, and the function that receives the result."""

    __slots__ = (
        "completion",
        "correlation_id",
        "created",
        "expect_response",
        "max_version",
        "message",
        "node_id",
        "timeout_ms",
    )

    def __init__(
        self,
        node_id: int,
        message: Any,
        created: float,
        timeout_ms: int,
        completion: Completion,
        *,
        expect_response: bool = True,
        max_version: int | None = None,
    ) -> None:
        self.node_id = node_id
        self.message = message
        self.created = created
        self.timeout_ms = timeout_ms
        """Counted from the moment it is sent."""
        self.completion = completion
        self.expect_response = expect_response
        self.correlation_id = NOT_SENT
        """Identifies the response, and the broker's trace of the request."""
        self.max_version = max_version
        """The newest version that can carry this message, if that depends on its content."""
