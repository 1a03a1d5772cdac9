"""The door of a server's first listener, for connections that tests make without sockets."""

from __future__ import annotations

from ottla.broker.network_server.request_table import ListenerContext
from ottla.broker.server import Server


def door_of(server: Server) -> ListenerContext:
    """Return how the broker treats clients."""
    assert server.broker is not None
    return ListenerContext("PLAINTEXT", server.broker.gate, server.broker.requests, lambda host, now: 0.0)
