"""UnregisterBroker: the one broker cannot leave its own cluster, and others there are not."""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call
from ottla.errors import ErrorCode
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(node: BrokerNode, call: Call, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Always refused, with the reason."""
    wanted = request.broker_id
    if wanted != node.config.node_id:
        code, message = ErrorCode.BROKER_ID_NOT_REGISTERED, f"no broker {wanted} is registered"
    else:
        code = ErrorCode.INVALID_REQUEST
        message = f"Broker ID {wanted} answers this request and is the only one: stop it instead."
    return UnregisterBrokerResponse(error_code=code, error_message=message)
