"""Delegation tokens at the active controller, which creates, renews and expires them for clients of brokers.

The client's principal is in the envelope of the forwarded request. All nodes have the same `delegation.token.secret.key`, and
brokers read the tokens from the metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.controller.asker import Requester
from ottla.broker.network_server.connection import ANONYMOUS
from ottla.broker.security.delegation_token_requests import TokenRequest, TokenResponse, build_error, decide
from ottla.broker.security.delegation_tokens import DelegationTokens
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.coordination.cluster.events import Event
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.errors import ErrorCode, KafkaError

TICKET = 0


class RequestedEvents:
    """Collects the events of a token operation, so that the caller can decide them with its own callback."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self.machine = metadata
        self.events: list[Event] = []

    def submit(self, event: Callable[[int], Any]) -> None:
        self.events.append(event(TICKET))


def token_event(
    config: BrokerConfig,
    clock: Clock,
    metadata: ClusterMetadata,
    asker: Requester,
    request: TokenRequest,
    version: int,
    may_have_for: Callable[[str], bool],
) -> tuple[Event | None, TokenResponse]:
    """Return the event to decide and the response for its success; None and the response if the request is rejected."""
    wanted = RequestedEvents(metadata)
    try:
        if asker.principal == ANONYMOUS or asker.by_token:
            raise KafkaError(
                ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
                "delegation tokens are issued only to authenticated clients that did not authenticate by a token",
            )
        tokens = DelegationTokens(config, wanted, clock)
        response = decide(tokens, asker.principal, request, version, may_have_for)
    except KafkaError as error:
        return None, build_error(request, asker.principal, version, error.code)
    return wanted.events[0], response


def list_expirations(config: BrokerConfig, clock: Clock, metadata: ClusterMetadata) -> list[Event]:
    """Return the events that remove expired tokens."""
    wanted = RequestedEvents(metadata)
    DelegationTokens(config, wanted, clock).remove_expired()
    return wanted.events
