"""SaslAuthenticate: one step of a login, either way (KIP-152, KIP-368)."""

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
    """After so long the broker wants another login on this connection; 0: never."""
