"""ExpireDelegationToken: set the expiry of a token (KIP-48)."""

from __future__ import annotations

from ottla.protocol.schema import Bytes, Int16, Int32, Int64, Message, message


@message(key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenRequest(Message):
    hmac: Bytes = b""
    expiry_time_period_ms: Int64 = 0

    def __repr__(self) -> str:
        return "ExpireDelegationTokenRequest([hidden])"


@message(key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse(Message):
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
