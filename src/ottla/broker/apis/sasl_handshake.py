"""SaslHandshake: choose the SASL mechanism of a connection."""

from __future__ import annotations

from ottla.broker.network_server.call import Call
from ottla.broker.node import BrokerNode
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

BARE = 0
"""After a handshake of this version, SASL messages follow without request headers."""


def handle(node: BrokerNode, call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Choose a mechanism. Rejected on a listener without SASL, as in Kafka."""
    code, mechanisms = node.authentication.shake_hands(call.connection, request.mechanism, raw=call.version == BARE)
    return SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)
