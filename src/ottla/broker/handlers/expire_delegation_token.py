"""ExpireDelegationToken: have a token end, now or later."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import KafkaError
from ottla.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


def handle(node: BrokerNode, call: Call, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    """For its owner and those who may renew it."""
    try:
        node.authentication.ensure_may_have_tokens(call.connection)
        ends = node.tokens.expire(call.connection.principal, bytes(request.hmac), request.expiry_time_period_ms)
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ends)
