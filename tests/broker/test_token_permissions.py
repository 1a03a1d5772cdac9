"""Delegation tokens for somebody else: who may have them made, see them, renew them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ottla.coordination.access.acl import Acl
from ottla.errors import ErrorCode
from ottla.protocol.acl import Operation, PatternType, PermissionType, ResourceType
from ottla.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.broker.every_api import Asked
from tests.broker.house import House, requested


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    house = House()
    yield house
    house.close()


def allow(house: House, who: str, operation: Operation, kind: ResourceType, name: str) -> None:
    rule = Acl(kind, name, PatternType.LITERAL, f"User:{who}", "*", operation, PermissionType.ALLOW)
    assert house.node.access is not None
    house.node.access.ask(partial(requested, [rule]))


def create(house: House, who: str, owner: str) -> Any:
    return house.ask(Asked(CreateDelegationTokenRequest("User", owner, [], 60_000), 3), who)


def owners_seen_by(house: House, who: str, *owners: str) -> list[str]:
    named = [DescribeDelegationTokenOwner("User", owner) for owner in owners] if owners else None
    answer = house.ask(Asked(DescribeDelegationTokenRequest(named), 3), who)
    assert answer.error_code == 0
    return sorted(each.principal_name for each in answer.tokens)


def test_only_who_is_allowed_to_has_a_token_made_for_somebody_else(house: House) -> None:
    allow(house, "agent", Operation.CREATE_TOKENS, ResourceType.USER, "User:ann")
    made = create(house, "agent", "ann")
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "ann", "agent")
    for who, owner in (("agent", "bob"), ("nobody", "ann")):
        refused = create(house, who, owner)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (refused.principal_name, refused.hmac) == (owner, b"")
    assert create(house, "nobody", "nobody").error_code == 0


def test_who_asked_for_a_token_may_renew_it_and_have_it_end_as_its_owner_may(house: House) -> None:
    allow(house, "helper", Operation.CREATE_TOKENS, ResourceType.USER, "User:cyd")
    for who, code in (
        ("helper", 0),
        ("cyd", 0),
        ("nobody", ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
    ):
        hmac = create(house, "helper", "cyd").hmac
        assert house.ask(Asked(RenewDelegationTokenRequest(hmac, 1000), 2), who).error_code == code
        assert house.ask(Asked(ExpireDelegationTokenRequest(hmac, -1), 2), who).error_code == code


def test_a_token_is_seen_by_those_whom_it_concerns_and_those_who_may_know_of_it(house: House) -> None:
    token = create(house, "admin", "dan")
    assert owners_seen_by(house, "dan") == ["dan"]
    assert "dan" in owners_seen_by(house, "admin", "dan")
    assert owners_seen_by(house, "eve") == []
    allow(house, "eve", Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:dan")
    allow(house, "fay", Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
    assert owners_seen_by(house, "eve") == owners_seen_by(house, "fay") == ["dan"]
    assert owners_seen_by(house, "eve", "ann") == []
