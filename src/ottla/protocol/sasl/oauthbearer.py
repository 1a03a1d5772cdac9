"""OAUTHBEARER: a token instead of a password (RFC 7628), with Kafka's extensions (KIP-342)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sentences import shown

NAME = re.compile(r"[A-Za-z]+")
VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""The characters allowed after `Bearer` (RFC 6750); none of them can end the header."""
ABORT = b"\x01"


class OAuthBearerConversation:
    """Sends the token; if the server rejects it, sends the message after which the server ends the login."""

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        if not TOKEN.fullmatch(token):
            raise SaslError("the token contains invalid characters: expected letters, digits and -._~+/")
        lines = [f"auth=Bearer {token}"]
        for name, value in (extensions or {}).items():
            check_extension(name, value)
            lines.append(f"{name}={value}")
        self._message: bytes | None = ("n,,\x01" + "\x01".join(lines) + "\x01\x01").encode()
        self._refusal: str | None = None
        self.complete = False

    def next(self, challenge: bytes) -> bytes | None:
        """Return the token; then None if the server accepts it, else the abort message, and raise SaslError after that."""
        if self._message is not None:
            message, self._message = self._message, None
            return message
        if self._refusal is not None:
            raise SaslError(self._refusal)
        if challenge:
            self._refusal = refusal(challenge)
            return ABORT
        self.complete = True
        return None

    @property
    def refusal(self) -> str | None:
        """The server's reason for rejecting the token, once received."""
        return self._refusal


def check_extension(name: str, value: str) -> None:
    """Raise SaslError for an extension that would make the message ambiguous."""
    if not NAME.fullmatch(name) or name == "auth":
        raise SaslError(
            f"the extension {name!r} cannot be sent: its name must consist of letters, and must not be auth"
        )
    if not VALUE.fullmatch(value):
        raise SaslError(
            f"the extension {name} cannot be sent: its value must be printable ASCII, and must not be empty"
        )


def refusal(challenge: bytes) -> str:
    """Return the server's reason for rejecting the token, in one phrase."""
    try:
        reason = json.loads(challenge)
    except (ValueError, RecursionError):
        reason = None
    if not isinstance(reason, dict):
        return "the server rejected the token without a reason"
    parts = [
        f"{name} = {shown(reason[name])}" for name in ("status", "scope", "openid-configuration") if reason.get(name)
    ]
    return "the server rejected the token" + (f" ({', '.join(parts)})" if parts else "")
