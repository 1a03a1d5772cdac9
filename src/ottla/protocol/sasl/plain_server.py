"""PLAIN on the server side: one message with user name and password (RFC 4616)."""

from __future__ import annotations

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.server import PasswordShown, Step


class PlainServerConversation:
    """Parses the message; the caller checks the password."""

    def next(self, message: bytes) -> Step:
        """Return the user name and the password."""
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            raise SaslError("the message is not UTF-8") from None
        if len(parts) != 3:
            raise SaslError("expected three parts: authorization id, user name and password")
        authorization, username, password = parts
        if not username or not password:
            raise SaslError("the name or the password is empty")
        if authorization not in ("", username):
            raise SaslError("the authorization id differs from the user name")
        return PasswordShown(username, password)
