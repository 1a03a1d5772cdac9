"""UnregisterBroker: remove a broker that will not return."""

from __future__ import annotations

from ottla.protocol.schema import Int16, Int32, Message, String, message


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerRequest(Message):
    broker_id: Int32 = 0


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
