"""Delegation tokens where controllers decide: made, renewed and ended by the active one, for clients of whom brokers say who they are.

All nodes have the same `delegation.token.secret.key`. The brokers read from the metadata which tokens there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.authentication.delegation_tokens import DelegationTokens
from ottla.broker.authentication.token_requests import TokenRequest, TokenResponse, decided, refused
from ottla.broker.controller_access import Asker
from ottla.broker.requests.connection import ANONYMOUS
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.coordination.cluster.events import Event
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.errors import ErrorCode, KafkaError

TICKET = 0


class Wanted:
    """The metadata as they are, and what is to become of them: not before whoever asks has decided it."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self.machine = metadata
        self.events: list[Event] = []

    def ask(self, event: Callable[[int], Any]) -> None:
        self.events.append(event(TICKET))


def token_event(
    config: BrokerConfig,
    clock: Clock,
    metadata: ClusterMetadata,
    asker: Asker,
    request: TokenRequest,
    version: int,
    may_have_for: Callable[[str], bool],
) -> tuple[Event | None, TokenResponse]:
    """What is to be decided, and the answer once it is; nothing, and a refusal."""
    wanted = Wanted(metadata)
    try:
        if asker.principal == ANONYMOUS or asker.by_token:
            raise KafkaError(
                ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, "tokens are for who has logged in, and not by a token"
            )
        tokens = DelegationTokens(config, wanted, clock)
        response = decided(tokens, asker.principal, request, version, may_have_for)
    except KafkaError as error:
        return None, refused(request, asker.principal, version, error.code)
    return wanted.events[0], response


def swept(config: BrokerConfig, clock: Clock, metadata: ClusterMetadata) -> list[Event]:
    """What clears away the tokens that have ended."""
    wanted = Wanted(metadata)
    DelegationTokens(config, wanted, clock).sweep()
    return wanted.events
