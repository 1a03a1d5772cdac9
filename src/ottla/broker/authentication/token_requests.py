"""Requests for delegation tokens as those who keep them answer: a broker that is a cluster of its own, else the active controller."""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.authentication.delegation_tokens import DelegationTokens, pair
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

USER = "User"
REQUESTER_TOLD_SINCE = 3
TokenRequest = CreateDelegationTokenRequest | RenewDelegationTokenRequest | ExpireDelegationTokenRequest
TokenResponse = CreateDelegationTokenResponse | RenewDelegationTokenResponse | ExpireDelegationTokenResponse


def created(
    tokens: DelegationTokens,
    principal: str,
    request: CreateDelegationTokenRequest,
    version: int,
    may_have_for: Callable[[str], bool],
) -> CreateDelegationTokenResponse:
    """A token for who asks, or for somebody else, where that is allowed; KafkaError where there is none."""
    owner = owner_of(request, principal)
    if owner != principal and not may_have_for(owner):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, f"{principal} may have no tokens for {owner}")
    if any(each.principal_type != USER for each in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE, "tokens are renewed by principals of type User")
    renewers = [f"{each.principal_type}:{each.principal_name}" for each in request.renewers]
    token = tokens.create(owner, principal, renewers, request.max_lifetime_ms)
    told = concerning(owner, principal, version)
    told.issue_timestamp_ms, told.max_timestamp_ms = token.issue_timestamp, token.max_timestamp
    told.expiry_timestamp_ms, told.token_id = token.expiration_timestamp, token.token_id
    told.hmac = tokens.hmac_of(token.token_id)
    return told


def concerning(owner: str, principal: str, version: int) -> CreateDelegationTokenResponse:
    """An answer that says whose the token is, or would be."""
    told = CreateDelegationTokenResponse()
    told.principal_type, told.principal_name = pair(owner)
    if version >= REQUESTER_TOLD_SINCE:
        told.token_requester_principal_type, told.token_requester_principal_name = pair(principal)
    return told


def owner_of(request: CreateDelegationTokenRequest, principal: str) -> str:
    """Whose the token is to be; where nothing is said, who asks."""
    if not request.owner_principal_name:
        return principal
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def refused(request: TokenRequest, principal: str, version: int, code: int) -> TokenResponse:
    """That there is none, or that it ends when it did."""
    match request:
        case CreateDelegationTokenRequest():
            told = concerning(owner_of(request, principal), principal, version)
            told.error_code = code
            return told
        case RenewDelegationTokenRequest():
            return RenewDelegationTokenResponse(error_code=code)
    return ExpireDelegationTokenResponse(error_code=code)


def decided(
    tokens: DelegationTokens,
    principal: str,
    request: TokenRequest,
    version: int,
    may_have_for: Callable[[str], bool],
) -> TokenResponse:
    """Have it done; KafkaError where it cannot be."""
    match request:
        case CreateDelegationTokenRequest():
            return created(tokens, principal, request, version, may_have_for)
        case RenewDelegationTokenRequest():
            ends = tokens.renew(principal, bytes(request.hmac), request.renew_period_ms)
            return RenewDelegationTokenResponse(expiry_timestamp_ms=ends)
    ends = tokens.expire(principal, bytes(request.hmac), request.expiry_time_period_ms)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ends)
