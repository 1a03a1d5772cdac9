"""SaslAuthenticate: one step of a login."""

from __future__ import annotations

from ottla.broker.network_server.call import Call, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.security.login import LoginAnswer
from ottla.errors import ErrorCode
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

NO_LOGIN = "this listener has no SASL: connect with security.protocol={}"


def handle(node: BrokerNode, call: Call, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse | Outcome:
    """Process a step of a login, and answer when it is done. Rejected on a listener without SASL, as in Kafka."""
    security = node.authentication.find_security(call.connection)
    if not security.with_sasl:
        message = NO_LOGIN.format(security.protocol)
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message)
    at_once: list[LoginAnswer] = []
    later = False

    def reply(answer: LoginAnswer) -> None:
        if later:
            call.answer(SaslAuthenticateResponse(*answer))
        else:
            at_once.append(answer)

    node.authentication.authenticate(call.connection, bytes(request.auth_bytes), reply)
    later = True
    return SaslAuthenticateResponse(*at_once[0]) if at_once else Outcome.LATER
