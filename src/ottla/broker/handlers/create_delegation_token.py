"""CreateDelegationToken: something to log in by that is no password, and ends by itself."""

from __future__ import annotations

from ottla.broker.access import denied
from ottla.broker.authentication.token_requests import TokenRequest, TokenResponse, decided, refused
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import KafkaError
from ottla.protocol.acl import Operation, ResourceType


def handle(node: BrokerNode, call: Call, request: TokenRequest) -> TokenResponse:
    """For who asks, who must have logged in, and not by a token; or for somebody else, where that is allowed."""
    principal = call.connection.principal

    def may_have_for(owner: str) -> bool:
        return not denied(node, call, Operation.CREATE_TOKENS, ResourceType.USER, owner)

    try:
        node.authentication.ensure_may_have_tokens(call.connection)
        return decided(node.tokens, principal, request, call.version, may_have_for)
    except KafkaError as error:
        return refused(request, principal, call.version, error.code)
