"""PLAIN: name and password as they are (RFC 4616). Only TLS keeps them from those who listen."""

from __future__ import annotations

from ottla.protocol.sasl.conversation import SaslError


class PlainConversation:
    """One message, and the server's silence."""

    def __init__(self, username: str, password: str) -> None:
        if "\0" in username or "\0" in password:
            raise SaslError("a user name or password with a NUL character cannot be sent by PLAIN")
        self._message: bytes | None = b"\0".join((b"", username.encode(), password.encode()))
        self.complete = False

    def next(self, challenge: bytes) -> bytes | None:
        """The message once; what the server answers with carries nothing."""
        message, self._message = self._message, None
        self.complete = message is None
        return message
