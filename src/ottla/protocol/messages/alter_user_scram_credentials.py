"""AlterUserScramCredentials: set and delete SCRAM credentials, salted by the client (KIP-554)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bytes, Int8, Int16, Int32, Message, String, message, struct


@struct
class ScramCredentialDeletion:
    name: String = ""
    mechanism: Int8 = 0


@struct
class ScramCredentialUpsertion:
    name: String = ""
    mechanism: Int8 = 0
    iterations: Int32 = 0
    salt: Bytes = b""
    salted_password: Bytes = b""

    def __repr__(self) -> str:
        return f"ScramCredentialUpsertion({self.name!r}, {self.mechanism}, [hidden])"


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest(Message):
    deletions: Sequence[ScramCredentialDeletion] = ()
    upsertions: Sequence[ScramCredentialUpsertion] = ()


@struct
class AlterUserScramCredentialsResult:
    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: Sequence[AlterUserScramCredentialsResult] = ()
    """One for each user."""
