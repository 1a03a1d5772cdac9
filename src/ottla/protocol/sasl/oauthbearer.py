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
"""What may stand behind `Bearer` (RFC 6750): nothing that could end the header it stands in."""
FAREWELL = b"\x01"


class OAuthBearerConversation:
    """The token, and where the server refuses it the farewell that lets it say so."""

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        if not TOKEN.fullmatch(token):
            raise SaslError("the token is not one that can be sent: it must be of letters, digits and -._~+/ alone")
        lines = [f"auth=Bearer {token}"]
        for name, value in (extensions or {}).items():
            check_extension(name, value)
            lines.append(f"{name}={value}")
        self._message: bytes | None = ("n,,\x01" + "\x01".join(lines) + "\x01\x01").encode()
        self._refusal: str | None = None
        self.complete = False

    def next(self, challenge: bytes) -> bytes | None:
        """The token; then nothing where the server is content, else the farewell, and SaslError after it."""
        if self._message is not None:
            message, self._message = self._message, None
            return message
        if self._refusal is not None:
            raise SaslError(self._refusal)
        if challenge:
            self._refusal = refusal(challenge)
            return FAREWELL
        self.complete = True
        return None

    @property
    def refusal(self) -> str | None:
        """What the server has against the token, once it has said so."""
        return self._refusal


def check_extension(name: str, value: str) -> None:
    """SaslError for what could not be told from the next line."""
    if not NAME.fullmatch(name) or name == "auth":
        raise SaslError(f"the extension {name!r} cannot be sent: its name must be of letters, and not be auth")
    if not VALUE.fullmatch(value):
        raise SaslError(f"the extension {name} cannot be sent: its value must be of printable ASCII, and not be empty")


def refusal(challenge: bytes) -> str:
    """What the server has against the token, in one phrase."""
    try:
        told = json.loads(challenge)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        return "the server refused the token and did not say why"
    parts = [f"{name} = {shown(told[name])}" for name in ("status", "scope", "openid-configuration") if told.get(name)]
    return "the server refused the token" + (f" ({', '.join(parts)})" if parts else "")
