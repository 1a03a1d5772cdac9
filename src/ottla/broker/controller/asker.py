"""The client of a request to the controller."""

from __future__ import annotations

from typing import NamedTuple

from ottla.broker.network_server.call import Call
from ottla.broker.network_server.connection import ANONYMOUS


class Requester(NamedTuple):
    """The client of a request."""

    principal: str
    host: str
    by_token: bool = False
    """True if the client has logged in by a delegation token."""
    client_id: str | None = None
    api_key: int = -1
    """The API of the request, for the audit log; negative if it is not known."""


def read_requester(call: Call) -> Requester:
    """Return the client of a call."""
    connection, header = call.connection, call.header
    return Requester(connection.principal, connection.peer[0], connection.by_token, header.client_id, header.api_key)


NOBODY = Requester(ANONYMOUS, "")
"""The client of requests of the broker role in the same process."""
