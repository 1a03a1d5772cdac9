"""RenewDelegationToken: keep a token for longer, within its life."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import KafkaError
from ottla.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def handle(node: BrokerNode, call: Call, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    """For its owner and those who may renew it."""
    try:
        node.authentication.ensure_may_have_tokens(call.connection)
        ends = node.tokens.renew(call.connection.principal, bytes(request.hmac), request.renew_period_ms)
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=ends)
