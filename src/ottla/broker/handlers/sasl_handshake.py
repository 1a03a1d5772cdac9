"""SaslHandshake: there is nobody to log in to on a listener without passwords, and this broker has no other yet."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(node: BrokerNode, call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Always refused, as Kafka refuses it on such a listener."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
