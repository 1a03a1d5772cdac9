"""DescribeDelegationToken: the tokens that the client owns, may renew or may describe."""

from __future__ import annotations

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.broker.security.delegation_tokens import split_principal
from ottla.coordination.cluster.records import DelegationTokenRecord
from ottla.errors import KafkaError
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

REQUESTER_TOLD_SINCE = 3


def handle(node: BrokerNode, call: Call, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    """Describe tokens. Those of other owners are returned only if the client may describe them."""
    owners = request.owners
    names = None if owners is None else [f"{each.principal_type}:{each.principal_name}" for each in owners]
    try:
        node.authentication.ensure_may_have_tokens(call.connection)
        tokens = node.tokens.seen_by(call.connection.principal, names, lambda token: may_see(node, call, token))
        return DescribeDelegationTokenResponse(tokens=[describe_token(node, token, call.version) for token in tokens])
    except KafkaError as error:
        return DescribeDelegationTokenResponse(error_code=error.code)


def describe_token(node: BrokerNode, token: DelegationTokenRecord, version: int) -> DescribedDelegationToken:
    """Return a token as described to its owner. The requester is included since version 3."""
    return DescribedDelegationToken(
        *split_principal(token.owner),
        *(split_principal(token.requester) if version >= REQUESTER_TOLD_SINCE else ("", "")),
        token.issue_timestamp,
        token.expiration_timestamp,
        token.max_timestamp,
        token.token_id,
        node.tokens.hmac_of(token.token_id),
        [DescribedDelegationTokenRenewer(*split_principal(each)) for each in token.renewers],
    )


def may_see(node: BrokerNode, call: Call, token: DelegationTokenRecord) -> bool:
    """Return True if the client may describe a token that is not its own."""
    access = node.access
    return (
        access is None
        or access.can_describe(call, ResourceType.DELEGATION_TOKEN, token.token_id)
        or access.is_visible(call, Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )
