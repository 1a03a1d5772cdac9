"""OAUTHBEARER seen from the server: a token, and where it is refused one more message before the end (RFC 7628)."""

from __future__ import annotations

import json

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.oauthbearer import FAREWELL, NAME, TOKEN, VALUE
from ottla.protocol.sasl.server import Step, TokenShown

HEADERS = ("n,,", "y,,")
"""No channel binding, and nobody else to act for (RFC 5801)."""
REFUSAL = json.dumps({"status": "invalid_token"}).encode()
"""What a client is told whose token is not taken; why, the log says."""


class OAuthBearerServerConversation:
    """Reads the message; whether the token is good, others find out."""

    def __init__(self) -> None:
        self._refusal = ""

    def next(self, message: bytes) -> Step:
        """The token; after `refuse` the client's farewell, and the end."""
        if self._refusal:
            raise SaslError(self._refusal if message == FAREWELL else f"{self._refusal}, and it did not say farewell")
        return TokenShown(token_of(message))

    def refuse(self, reason: str) -> bytes:
        """What the client is told; it may answer before the login fails."""
        self._refusal = reason
        return REFUSAL


def token_of(message: bytes) -> str:
    """The token in the message; extensions are checked, and nothing is done with them."""
    try:
        text = message.decode("ascii")
    except UnicodeDecodeError:
        raise SaslError("the message is not ASCII") from None
    header, *lines = text.split("\x01")
    if header not in HEADERS or lines[-2:] != ["", ""]:
        raise SaslError("the message is not one of OAUTHBEARER's")
    pairs = [line.partition("=") for line in lines[:-2]]
    tokens = [value for name, _, value in pairs if name == "auth"]
    for name, _, value in pairs:
        if not NAME.fullmatch(name) or not VALUE.fullmatch(value):
            raise SaslError("an extension in the message is not written as it must be")
    if len(tokens) != 1:
        raise SaslError("the message must have one token")
    scheme, _, token = tokens[0].partition(" ")
    if scheme.lower() != "bearer" or not TOKEN.fullmatch(token.strip()):
        raise SaslError("what the message shows is not a bearer token")
    return token.strip()
