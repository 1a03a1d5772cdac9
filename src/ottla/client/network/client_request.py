"""A request on its way to a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.client.network.client_response import ClientResponse

Completion = Callable[[ClientResponse], None]
NOT_SENT = -1


class ClientRequest:
    """What to send, to whom, and whom to tell."""

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
        """By which its answer is known, and the broker's work for it."""
        self.max_version = max_version
        """The newest version that can carry this message, where that depends on its content."""
