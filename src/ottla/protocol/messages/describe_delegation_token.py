"""DescribeDelegationToken: list the tokens that the requester may see (KIP-48)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bytes, Int16, Int32, Int64, Message, String, message, since, struct


@struct
class DescribeDelegationTokenOwner:
    principal_type: String = ""
    principal_name: String = ""


@message(key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenRequest(Message):
    owners: Sequence[DescribeDelegationTokenOwner] | None = ()
    """Owners of the tokens; None: all tokens."""


@struct
class DescribedDelegationTokenRenewer:
    principal_type: String = ""
    principal_name: String = ""


@struct
class DescribedDelegationToken:
    principal_type: String = ""
    principal_name: String = ""
    token_requester_principal_type: String = since(3, default="")
    token_requester_principal_name: String = since(3, default="")
    issue_timestamp: Int64 = 0
    expiry_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    renewers: Sequence[DescribedDelegationTokenRenewer] = ()

    def __repr__(self) -> str:
        return f"DescribedDelegationToken({self.token_id!r}, [hidden])"


@message(key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse(Message):
    error_code: Int16 = 0
    tokens: Sequence[DescribedDelegationToken] = ()
    throttle_time_ms: Int32 = 0
