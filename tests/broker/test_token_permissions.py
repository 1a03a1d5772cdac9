"""Delegation tokens for another user: permissions to create, describe and renew them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.acl import Operation, PatternType, PermissionType, ResourceType
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.broker.every_api import SampleRequest
from tests.broker.in_process_broker import House
from tests.broker.serving import decide


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    house = House()
    yield house
    house.close()


def allow(house: House, who: str, operation: Operation, kind: ResourceType, name: str) -> None:
    rule = AclCreation(kind, name, PatternType.LITERAL, f"User:{who}", "*", operation, PermissionType.ALLOW)
    decide(house.server, CreateAclsRequest([rule]), 3)


def create(house: House, who: str, owner: str) -> Any:
    return house.ask(SampleRequest(CreateDelegationTokenRequest("User", owner, [], 60_000), 3), who)


def owners_seen_by(house: House, who: str, *owners: str) -> list[str]:
    named = [DescribeDelegationTokenOwner("User", owner) for owner in owners] if owners else None
    answer = house.ask(SampleRequest(DescribeDelegationTokenRequest(named), 3), who)
    assert answer.error_code == 0
    return sorted(each.principal_name for each in answer.tokens)


def test_a_token_for_another_user_requires_permission(house: House) -> None:
    allow(house, "agent", Operation.CREATE_TOKENS, ResourceType.USER, "User:ann")
    made = create(house, "agent", "ann")
    assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "ann", "agent")
    for who, owner in (("agent", "bob"), ("nobody", "ann")):
        refused = create(house, who, owner)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (refused.principal_name, refused.hmac) == (owner, b"")
    assert create(house, "nobody", "nobody").error_code == 0


def test_the_requester_of_a_token_may_renew_and_expire_it_like_its_owner(house: House) -> None:
    allow(house, "helper", Operation.CREATE_TOKENS, ResourceType.USER, "User:cyd")
    for who, code in (
        ("helper", 0),
        ("cyd", 0),
        ("nobody", ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
    ):
        hmac = create(house, "helper", "cyd").hmac
        assert house.ask(SampleRequest(RenewDelegationTokenRequest(hmac, 1000), 2), who).error_code == code
        assert house.ask(SampleRequest(ExpireDelegationTokenRequest(hmac, -1), 2), who).error_code == code


def test_a_token_is_described_to_its_users_and_to_principals_with_permission(house: House) -> None:
    token = create(house, "admin", "dan")
    assert owners_seen_by(house, "dan") == ["dan"]
    assert "dan" in owners_seen_by(house, "admin", "dan")
    assert owners_seen_by(house, "eve") == []
    allow(house, "eve", Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:dan")
    allow(house, "fay", Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
    assert owners_seen_by(house, "eve") == owners_seen_by(house, "fay") == ["dan"]
    assert owners_seen_by(house, "eve", "ann") == []
