"""PLAIN: user name and password in clear text (RFC 4616). Only TLS protects them."""

from __future__ import annotations

from ottla.protocol.sasl.conversation import SaslError


class PlainConversation:
    """One message, and an empty response."""

    def __init__(self, username: str, password: str) -> None:
        if "\0" in username or "\0" in password:
            raise SaslError("a user name or password with a NUL character cannot be sent by PLAIN")
        self._message: bytes | None = b"\0".join((b"", username.encode(), password.encode()))
        self.complete = False

    def next(self, challenge: bytes) -> bytes | None:
        """Return the message once; the server's response is empty."""
        message, self._message = self._message, None
        self.complete = message is None
        return message
