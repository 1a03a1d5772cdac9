"""What the active controller decides of delegation tokens, for whom brokers say that it is."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.broker.controller_access import Asker
from ottla.broker.controller_tokens import swept, token_event
from ottla.broker.settings.config import read_config
from ottla.clock import ManualClock
from ottla.coordination.cluster.events import TokenRequested, TokensUnwanted
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import DelegationTokenRecord
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

CONFIG = read_config({"delegation.token.secret.key": "s3cret"})
ALICE, BOB = Asker("User:alice", "127.0.0.1"), Asker("User:bob", "127.0.0.1")


class Keeper:
    """The metadata, which have what is decided at once."""

    def __init__(self) -> None:
        self.metadata = ClusterMetadata()
        self.clock = ManualClock()

    def ask(self, asker: Asker, request: Any, config: Any = CONFIG) -> Any:
        event, response = token_event(config, self.clock, self.metadata, asker, request, 3, lambda owner: False)
        if isinstance(event, TokenRequested):
            self.metadata.replay(event.token)
        elif isinstance(event, TokensUnwanted):
            self.forget(event)
        return response

    def forget(self, event: TokensUnwanted) -> None:
        for record in self.metadata.decide(event, 0.0).records:
            self.metadata.replay(record)

    @property
    def tokens(self) -> list[DelegationTokenRecord]:
        return list(self.metadata.tokens.values())


def test_a_token_is_made_for_who_asks_and_ended_by_it() -> None:
    keeper = Keeper()
    made = keeper.ask(ALICE, CreateDelegationTokenRequest())
    assert [(each.owner, each.token_id) for each in keeper.tokens] == [("User:alice", made.token_id)]
    assert keeper.ask(ALICE, ExpireDelegationTokenRequest(made.hmac, -1)).error_code == 0
    assert keeper.tokens == []


def test_nobody_else_renews_a_token() -> None:
    keeper = Keeper()
    made = keeper.ask(ALICE, CreateDelegationTokenRequest())
    refused = keeper.ask(BOB, RenewDelegationTokenRequest(made.hmac, 1000))
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


@pytest.mark.parametrize("asker", [Asker("User:ANONYMOUS", "::1"), ALICE._replace(by_token=True)])
def test_who_has_not_logged_in_or_did_so_by_a_token_gets_none(asker: Asker) -> None:
    keeper = Keeper()
    refused = keeper.ask(asker, CreateDelegationTokenRequest())
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert keeper.tokens == []


def test_without_a_secret_there_are_none() -> None:
    refused = Keeper().ask(ALICE, CreateDelegationTokenRequest(), read_config({}))
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_who_renews_must_be_a_user() -> None:
    wanted = CreateDelegationTokenRequest(renewers=[CreatableRenewers("Group", "all")])
    assert Keeper().ask(ALICE, wanted).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_those_that_have_ended_are_cleared_away() -> None:
    keeper = Keeper()
    keeper.ask(ALICE, CreateDelegationTokenRequest(max_lifetime_ms=1000))
    assert swept(CONFIG, keeper.clock, keeper.metadata) == []
    keeper.clock.advance(2.0)
    (event,) = swept(CONFIG, keeper.clock, keeper.metadata)
    assert isinstance(event, TokensUnwanted)
    keeper.forget(event)
    assert keeper.tokens == []
