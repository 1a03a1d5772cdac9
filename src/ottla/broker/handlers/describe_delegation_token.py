"""DescribeDelegationToken: the tokens that one has, may renew or may know of."""

from __future__ import annotations

from ottla.broker.authentication.delegation_tokens import pair
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
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
    """What others have is told to who may know of it."""
    owners = request.owners
    names = None if owners is None else [f"{each.principal_type}:{each.principal_name}" for each in owners]
    try:
        node.authentication.ensure_may_have_tokens(call.connection)
        tokens = node.tokens.seen_by(call.connection.principal, names, lambda token: may_see(node, call, token))
        return DescribeDelegationTokenResponse(tokens=[described(node, token, call.version) for token in tokens])
    except KafkaError as error:
        return DescribeDelegationTokenResponse(error_code=error.code)


def described(node: BrokerNode, token: DelegationTokenRecord, version: int) -> DescribedDelegationToken:
    """A token as its owner sees it; who asked for it is told since version 3."""
    return DescribedDelegationToken(
        *pair(token.owner),
        *(pair(token.requester) if version >= REQUESTER_TOLD_SINCE else ("", "")),
        token.issue_timestamp,
        token.expiration_timestamp,
        token.max_timestamp,
        token.token_id,
        node.tokens.hmac_of(token.token_id),
        [DescribedDelegationTokenRenewer(*pair(each)) for each in token.renewers],
    )


def may_see(node: BrokerNode, call: Call, token: DelegationTokenRecord) -> bool:
    """Whether somebody may know of a token that is none of its own."""
    access = node.access
    return (
        access is None
        or access.sees(call, ResourceType.DELEGATION_TOKEN, token.token_id)
        or access.shows(call, Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )
