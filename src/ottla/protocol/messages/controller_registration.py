"""ControllerRegistration: a started controller reports its endpoints to the active one (KIP-919)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.broker_registration import Feature, Listener
from ottla.protocol.schema import ZERO_UUID, Bool, Int16, Int32, Message, String, Uuid, message


@message(key=70, versions="0", flexible="0+")
class ControllerRegistrationRequest(Message):
    controller_id: Int32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: Bool = False
    listeners: Sequence[Listener] = ()
    features: Sequence[Feature] = ()


@message(key=70, versions="0", flexible="0+")
class ControllerRegistrationResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
