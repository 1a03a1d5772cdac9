"""What becomes of requests: who asked is told, once."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ottla.client.network.client_response import ClientResponse
from ottla.client.network.in_flight_requests import InFlightRequest

LOG = logging.getLogger(__name__)


def lost(node_id: int, entries: Iterable[InFlightRequest], reason: str, now: float) -> list[ClientResponse]:
    """What becomes of requests whose connection has ended."""
    return [ClientResponse(node_id, entry.request, now, version=entry.version, reason=reason) for entry in entries]


def complete(response: ClientResponse) -> None:
    """Tell whoever asked; an error in there must not cost the other answers."""
    request = response.request
    # Whoever is told has often made the request as well: forgotten here, neither keeps the other, and the frame that
    # the answer came in, alive until the garbage collector looks.
    completion, request.completion = request.completion, completed_already
    try:
        completion(response)
    except Exception:
        LOG.exception("handling an answer failed")


def completed_already(response: ClientResponse) -> None:
    """Nobody is left to tell."""
