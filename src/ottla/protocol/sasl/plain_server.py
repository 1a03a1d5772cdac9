"""PLAIN seen from the server: one message with name and password (RFC 4616)."""

from __future__ import annotations

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.server import PasswordShown, Step


class PlainServerConversation:
    """Reads the message; whether the password is right, others find out."""

    def next(self, message: bytes) -> Step:
        """Who it is to be, and the password."""
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            raise SaslError("the message is not text in UTF-8") from None
        if len(parts) != 3:
            raise SaslError("the message has not the three parts of PLAIN: authorization id, name and password")
        authorization, username, password = parts
        if not username or not password:
            raise SaslError("the name or the password is empty")
        if authorization not in ("", username):
            raise SaslError("it wants to act for somebody else than who logs in")
        return PasswordShown(username, password)
