"""OAUTHBEARER on the server side: a token, and one more message of the client if it is rejected (RFC 7628)."""

from __future__ import annotations

import json

from ottla.protocol.sasl.conversation import SaslError
from ottla.protocol.sasl.oauthbearer import ABORT, NAME, TOKEN, VALUE
from ottla.protocol.sasl.server import Step, TokenShown

HEADERS = ("n,,", "y,,")
"""No channel binding, and no authorization id (RFC 5801)."""
REFUSAL = json.dumps({"status": "invalid_token"}).encode()
"""The response to a rejected token; the reason is only logged."""


class OAuthBearerServerConversation:
    """Parses the message; the caller validates the token."""

    def __init__(self) -> None:
        self._refusal = ""

    def next(self, message: bytes) -> Step:
        """Return the token; after `refuse`, raise SaslError for the client's last message."""
        if self._refusal:
            raise SaslError(self._refusal if message == ABORT else f"{self._refusal}; its last message is malformed")
        return TokenShown(token_of(message))

    def refuse(self, reason: str) -> bytes:
        """Return the response to a rejected token; the client sends one more message before the login fails."""
        self._refusal = reason
        return REFUSAL


def token_of(message: bytes) -> str:
    """Return the token of the message; extensions are checked and ignored."""
    try:
        text = message.decode("ascii")
    except UnicodeDecodeError:
        raise SaslError("the message is not ASCII") from None
    header, *lines = text.split("\x01")
    if header not in HEADERS or lines[-2:] != ["", ""]:
        raise SaslError("the message is not an OAUTHBEARER message")
    pairs = [line.partition("=") for line in lines[:-2]]
    tokens = [value for name, _, value in pairs if name == "auth"]
    for name, _, value in pairs:
        if not NAME.fullmatch(name) or not VALUE.fullmatch(value):
            raise SaslError("an extension in the message is malformed")
    if len(tokens) != 1:
        raise SaslError("the message must have one token")
    scheme, _, token = tokens[0].partition(" ")
    if scheme.lower() != "bearer" or not TOKEN.fullmatch(token.strip()):
        raise SaslError("the message does not contain a bearer token")
    return token.strip()
