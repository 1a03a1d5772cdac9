"""DescribeUserScramCredentials: the SCRAM mechanisms and iteration counts of users (KIP-554)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int8, Int16, Int32, Message, String, message, struct


@struct
class UserName:
    name: String = ""


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest(Message):
    users: Sequence[UserName] | None = ()
    """None or empty requests every user."""


@struct
class CredentialInfo:
    mechanism: Int8 = 0
    """1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512."""
    iterations: Int32 = 0


@struct
class DescribeUserScramCredentialsResult:
    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = None
    credential_infos: Sequence[CredentialInfo] = ()


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    results: Sequence[DescribeUserScramCredentialsResult] = ()
