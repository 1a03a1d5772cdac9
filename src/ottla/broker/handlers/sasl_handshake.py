"""SaslHandshake: by which mechanism a connection logs in."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

BARE = 0
"""In this version what follows are bare messages of SASL, and no requests."""


def handle(node: BrokerNode, call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Refused on a listener where nobody logs in, as Kafka refuses it."""
    code, mechanisms = node.authentication.shake_hands(call.connection, request.mechanism, raw=call.version == BARE)
    return SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)
