"""UnregisterBroker: always refused, with the reason."""

from __future__ import annotations

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.broker.wire import Wire


@pytest.mark.parametrize(
    ("broker_id", "code", "reason"),
    [
        (1, ErrorCode.INVALID_REQUEST, "the only one"),
        (2, ErrorCode.BROKER_ID_NOT_REGISTERED, "no broker 2 is registered"),
        (-1, ErrorCode.BROKER_ID_NOT_REGISTERED, "no broker -1 is registered"),
    ],
)
def test_the_only_broker_cannot_be_unregistered(wire: Wire, broker_id: int, code: int, reason: str) -> None:
    response = wire.ask(UnregisterBrokerRequest(broker_id))
    assert response.error_code == code
    assert reason in response.error_message
