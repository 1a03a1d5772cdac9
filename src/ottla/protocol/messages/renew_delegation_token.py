"""RenewDelegationToken: extend the expiry of a token within its maximum lifetime (KIP-48)."""

from __future__ import annotations

from ottla.protocol.schema import Bytes, Int16, Int32, Int64, Message, message


@message(key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenRequest(Message):
    hmac: Bytes = b""
    renew_period_ms: Int64 = 0

    def __repr__(self) -> str:
        return "RenewDelegationTokenRequest([hidden])"


@message(key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenResponse(Message):
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0
