"""SaslAuthenticate: one step of a login."""

from __future__ import annotations

from ottla.broker.authentication.login import LoginAnswer
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.errors import ErrorCode
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

NO_LOGIN = "this listener asks for no login: connect with security.protocol={}"


def handle(node: BrokerNode, call: Call, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse | Outcome:
    """Refused on a listener where nobody logs in, as Kafka refuses it; else answered as soon as it is known what to say."""
    security = node.authentication.security_of(call.connection)
    if not security.with_sasl:
        told = NO_LOGIN.format(security.protocol)
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=told)
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
