"""CreateDelegationToken: create a token for logins, with a limited lifetime (KIP-48)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bytes, Int16, Int32, Int64, Message, String, message, since, struct


@struct
class CreatableRenewers:
    principal_type: String = ""
    principal_name: String = ""


@message(key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenRequest(Message):
    owner_principal_type: String | None = since(3, default="")
    """The owner; None means the requester, as in versions without the field."""
    owner_principal_name: String | None = since(3, default="")
    renewers: Sequence[CreatableRenewers] = ()
    max_lifetime_ms: Int64 = 0
    """-1 means the broker's maximum."""


@message(key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse(Message):
    error_code: Int16 = 0
    principal_type: String = ""
    principal_name: String = ""
    token_requester_principal_type: String = since(3, default="")
    token_requester_principal_name: String = since(3, default="")
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    throttle_time_ms: Int32 = 0

    def __repr__(self) -> str:
        return f"CreateDelegationTokenResponse({self.error_code}, {self.token_id!r}, [hidden])"
