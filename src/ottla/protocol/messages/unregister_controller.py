"""UnregisterController: remove the registration of a controller that will not return."""

from __future__ import annotations

from ottla.protocol.schema import Int16, Int32, Message, String, message


@message(key=94, versions="0", flexible="0+")
class UnregisterControllerRequest(Message):
    controller_id: Int32 = 0


@message(key=94, versions="0", flexible="0+")
class UnregisterControllerResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
