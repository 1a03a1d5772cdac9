"""CreateDelegationToken: something to log in by that is no password, and ends by itself."""

from __future__ import annotations

from ottla.broker.access import denied
from ottla.broker.authentication.delegation_tokens import pair
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

USER = "User"
REQUESTER_TOLD_SINCE = 3


def handle(node: BrokerNode, call: Call, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    """For who asks, who must have logged in, and not by a token; or for somebody else, where that is allowed."""
    principal = call.connection.principal
    owner = owner_of(request, principal)
    told = CreateDelegationTokenResponse()
    told.principal_type, told.principal_name = pair(owner)
    if call.version >= REQUESTER_TOLD_SINCE:
        told.token_requester_principal_type, told.token_requester_principal_name = pair(principal)
    try:
        node.authentication.ensure_may_have_tokens(call.connection)
        if owner != principal and denied(node, call, Operation.CREATE_TOKENS, ResourceType.USER, owner):
            raise KafkaError(
                ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, f"{principal} may have no tokens for {owner}"
            )
        renewers = [f"{each.principal_type}:{each.principal_name}" for each in request.renewers]
        if any(each.principal_type != USER for each in request.renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE, "tokens are renewed by principals of type User")
        token = node.tokens.create(owner, principal, renewers, request.max_lifetime_ms)
    except KafkaError as error:
        told.error_code = error.code
        return told
    told.issue_timestamp_ms, told.max_timestamp_ms = token.issue_timestamp, token.max_timestamp
    told.expiry_timestamp_ms, told.token_id = token.expiration_timestamp, token.token_id
    told.hmac = node.tokens.hmac_of(token.token_id)
    return told


def owner_of(request: CreateDelegationTokenRequest, principal: str) -> str:
    """Whose the token is to be; where nothing is said, who asks."""
    if not request.owner_principal_name:
        return principal
    return f"{request.owner_principal_type}:{request.owner_principal_name}"
