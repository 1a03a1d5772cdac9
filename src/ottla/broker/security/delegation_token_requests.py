"""Requests for delegation tokens, answered by the node that keeps them: a broker without controllers, or the active controller."""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.security.delegation_tokens import DelegationTokens, split_principal
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


def build_creation_response(
    tokens: DelegationTokens,
    principal: str,
    request: CreateDelegationTokenRequest,
    version: int,
    may_have_for: Callable[[str], bool],
) -> CreateDelegationTokenResponse:
    """Create a token for the caller, or for another owner if `may_have_for` allows it. Raise KafkaError if not."""
    owner = find_owner(request, principal)
    if owner != principal and not may_have_for(owner):
        raise KafkaError(
            ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            f"{principal} is not authorized to create tokens for {owner}",
        )
    if any(each.principal_type != USER for each in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE, "only principals of type User can renew tokens")
    renewers = [f"{each.principal_type}:{each.principal_name}" for each in request.renewers]
    token = tokens.create(owner, principal, renewers, request.max_lifetime_ms)
    issued = build_token_response(owner, principal, version)
    issued.issue_timestamp_ms, issued.max_timestamp_ms = token.issue_timestamp, token.max_timestamp
    issued.expiry_timestamp_ms, issued.token_id = token.expiration_timestamp, token.token_id
    issued.hmac = tokens.hmac_of(token.token_id)
    return issued


def build_token_response(owner: str, principal: str, version: int) -> CreateDelegationTokenResponse:
    """Return a response with the token's owner, and its requester in versions that have it."""
    issued = CreateDelegationTokenResponse()
    issued.principal_type, issued.principal_name = split_principal(owner)
    if version >= REQUESTER_TOLD_SINCE:
        issued.token_requester_principal_type, issued.token_requester_principal_name = split_principal(principal)
    return issued


def find_owner(request: CreateDelegationTokenRequest, principal: str) -> str:
    """Return the owner of the requested token: the caller if the request names none."""
    if not request.owner_principal_name:
        return principal
    return f"{request.owner_principal_type}:{request.owner_principal_name}"


def build_error(request: TokenRequest, principal: str, version: int, code: int) -> TokenResponse:
    """Return the response of a request that was rejected, without a token or a new expiry."""
    match request:
        case CreateDelegationTokenRequest():
            issued = build_token_response(find_owner(request, principal), principal, version)
            issued.error_code = code
            return issued
        case RenewDelegationTokenRequest():
            return RenewDelegationTokenResponse(error_code=code)
    return ExpireDelegationTokenResponse(error_code=code)


def decide(
    tokens: DelegationTokens,
    principal: str,
    request: TokenRequest,
    version: int,
    may_have_for: Callable[[str], bool],
) -> TokenResponse:
    """Carry out a request. Raise KafkaError if it is rejected."""
    match request:
        case CreateDelegationTokenRequest():
            return build_creation_response(tokens, principal, request, version, may_have_for)
        case RenewDelegationTokenRequest():
            ends = tokens.renew(principal, bytes(request.hmac), request.renew_period_ms)
            return RenewDelegationTokenResponse(expiry_timestamp_ms=ends)
    ends = tokens.expire(principal, bytes(request.hmac), request.expiry_time_period_ms)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ends)
