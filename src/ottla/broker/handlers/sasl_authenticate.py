"""SaslAuthenticate: there is nobody to log in to on a listener without passwords, and this broker has no other yet."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(node: BrokerNode, call: Call, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Always refused, as Kafka refuses it on such a listener."""
    message = "this listener asks for no login: connect with security.protocol=PLAINTEXT"
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message)
