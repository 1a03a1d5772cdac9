"""Decisions of the active controller about delegation tokens, for the principals named by brokers."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.controller.asker import Requester
from ottla.broker.controller.controller_tokens import list_expirations, token_event
from ottla.broker.settings.config import read_config
from ottla.clock import ManualClock
from ottla.coordination.cluster.events import TokenCreationRequested, TokenDeletionRequested
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import DelegationTokenRecord
from ottla.coordination.controller import client_changes
from ottla.coordination.controller.config import ControllerConfig
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

CONFIG = read_config({"delegation.token.secret.key": "s3cret"})
ALICE, BOB = Requester("User:alice", "127.0.0.1"), Requester("User:bob", "127.0.0.1")


class Keeper:
    """The metadata, which have what is decided at once."""

    def __init__(self) -> None:
        self.metadata = ClusterMetadata()
        self.clock = ManualClock()

    def ask(self, asker: Requester, request: Any, config: Any = CONFIG) -> Any:
        event, response = token_event(config, self.clock, self.metadata, asker, request, 3, lambda owner: False)
        if isinstance(event, TokenCreationRequested):
            self.metadata.replay(event.token)
        elif isinstance(event, TokenDeletionRequested):
            self.forget(event)
        return response

    def forget(self, event: TokenDeletionRequested) -> None:
        for record in client_changes.decide(self.metadata, event, ControllerConfig("c")).records:
            self.metadata.replay(record)

    @property
    def tokens(self) -> list[DelegationTokenRecord]:
        return list(self.metadata.tokens.values())


def test_a_token_is_created_for_its_requester_and_expired_by_it() -> None:
    keeper = Keeper()
    made = keeper.ask(ALICE, CreateDelegationTokenRequest())
    assert [(each.owner, each.token_id) for each in keeper.tokens] == [("User:alice", made.token_id)]
    assert keeper.ask(ALICE, ExpireDelegationTokenRequest(made.hmac, -1)).error_code == 0
    assert keeper.tokens == []


def test_a_token_is_renewed_by_its_owner_only() -> None:
    keeper = Keeper()
    made = keeper.ask(ALICE, CreateDelegationTokenRequest())
    refused = keeper.ask(BOB, RenewDelegationTokenRequest(made.hmac, 1000))
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


@pytest.mark.parametrize("asker", [Requester("User:ANONYMOUS", "::1"), ALICE._replace(by_token=True)])
def test_an_unauthenticated_or_token_authenticated_client_gets_no_token(asker: Requester) -> None:
    keeper = Keeper()
    refused = keeper.ask(asker, CreateDelegationTokenRequest())
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert keeper.tokens == []


def test_without_a_secret_no_token_is_created() -> None:
    refused = Keeper().ask(ALICE, CreateDelegationTokenRequest(), read_config({}))
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_a_renewer_must_be_a_user() -> None:
    wanted = CreateDelegationTokenRequest(renewers=[CreatableRenewers("Group", "all")])
    assert Keeper().ask(ALICE, wanted).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_expired_tokens_are_removed() -> None:
    keeper = Keeper()
    keeper.ask(ALICE, CreateDelegationTokenRequest(max_lifetime_ms=1000))
    assert list_expirations(CONFIG, keeper.clock, keeper.metadata) == []
    keeper.clock.advance(2.0)
    (event,) = list_expirations(CONFIG, keeper.clock, keeper.metadata)
    assert isinstance(event, TokenDeletionRequested)
    keeper.forget(event)
    assert keeper.tokens == []
