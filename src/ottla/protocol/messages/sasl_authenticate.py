"""SaslAuthenticate: one message of a login and its response (KIP-152, KIP-368)."""

from __future__ import annotations

from ottla.protocol.schema import Bytes, Int16, Int64, Message, String, message, since


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Message):
    auth_bytes: Bytes = b""

    def __repr__(self) -> str:
        return "SaslAuthenticateRequest([hidden])"


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Message):
    error_code: Int16 = 0
    error_message: String | None = None
    auth_bytes: Bytes = b""
    session_lifetime_ms: Int64 = since(1, default=0, ignorable=True)
    """The time after which the broker demands a new login on this connection; 0: never."""
