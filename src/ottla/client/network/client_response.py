"""What became of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.network.client_request import ClientRequest


class ClientResponse:
    """An answer, or why there is none."""

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
        """The answer; None without one (also when none was expected)."""
        self.version = version
        """The version both messages travelled in."""
        self.reason = reason
        """Why the connection ended before the answer came; None when it did not."""
        self.error = error
        """What makes this request impossible with this broker, whatever happens to the connection."""

    @property
    def disconnected(self) -> bool:
        """Whether the answer was lost with the connection."""
        return self.reason is not None
