"""SCRAM: a password that is proved and never sent, by both sides (RFC 5802, RFC 7677).

Kafka's form of it: no channel binding, and the password's UTF-8 as it is, without SASLprep.
"""

from __future__ import annotations

import base64
import binascii
import re

from ottla.digests import are_same, hashed, mac, stretched
from ottla.protocol.sasl.conversation import SaslError

DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 262_144
"""A server that asks for more than this would have its clients' processors, not their proof; Kafka's most is 16,384."""
MOST_BYTES = 8192
"""A longer message is none."""
BEFORE = "n,,"
"""No channel binding, and none wished for."""
ERROR = re.compile(r"e=([ -+\--~]{1,100})")


class ScramConversation:
    """Three messages: who, the proof, and the check of the server's own proof."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str, *, token: bool = False) -> None:
        """`nonce` is printable ASCII without a comma, from good chance. With `token`: a delegation token's id and HMAC."""
        assert nonce.isascii()
        assert nonce.isprintable()
        assert nonce
        assert "," not in nonce
        self._digest = DIGESTS[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        extension = ",tokenauth=true" if token else ""
        self._first = f"n={escaped(username)},r={nonce}{extension}"
        self._signature: bytes | None = None
        self._told = False
        self.complete = False

    def next(self, challenge: bytes) -> bytes | None:
        """The client's first message, its final one, and nothing when the server's signature is right."""
        if not self._told:
            self._told = True
            return (BEFORE + self._first).encode()
        if self._signature is None:
            return self._prove(challenge)
        if not self.complete:
            self._check(challenge)
            self.complete = True
        return None

    def _prove(self, challenge: bytes) -> bytes:
        text = read(challenge)
        nonce, salt, iterations = server_first(text)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("the server's nonce does not continue ours: this is an answer to somebody else")
        salted = stretched(self._digest, self._password, salt, iterations)
        binding = base64.b64encode(BEFORE.encode()).decode()
        without_proof = f"c={binding},r={nonce}"
        said = f"{self._first},{text},{without_proof}".encode()
        client_key = self._mac(salted, b"Client Key")
        signature = self._mac(hashed(self._digest, client_key), said)
        self._signature = self._mac(self._mac(salted, b"Server Key"), said)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _check(self, challenge: bytes) -> None:
        text = read(challenge)
        refused = ERROR.match(text)
        if refused:
            raise SaslError(f"the server refused the proof: {refused[1]}")
        name, _, value = text.partition(",")[0].partition("=")
        if name != "v":
            raise SaslError("the server's last message has no signature")
        assert self._signature is not None
        if not are_same(decoded("signature", value), self._signature):
            raise SaslError("the server's signature is wrong: it does not know the password, and is not to be trusted")

    def _mac(self, key: bytes, data: bytes) -> bytes:
        return mac(key, data, self._digest)


def server_first(text: str) -> tuple[str, bytes, int]:
    """Nonce, salt and iterations of the server's first message, which must begin with them in this order."""
    refused = ERROR.match(text)
    if refused:
        raise SaslError(f"the server refused the user: {refused[1]}")
    parts = [part.partition("=") for part in text.split(",")]
    if parts[0][0] == "m":
        raise SaslError("the server demands an extension of SCRAM that is not known here")
    if [name for name, _, _ in parts[:3]] != ["r", "s", "i"]:
        raise SaslError("the server's first message is not one of SCRAM's")
    salt = decoded("salt", parts[1][2])
    if not salt:
        raise SaslError("the server's salt is empty")
    return parts[0][2], salt, checked_iterations(parts[2][2])


def checked_iterations(text: str) -> int:
    """A number that is neither so small that the password is laid open, nor so large that the work is an attack."""
    if not re.fullmatch(r"[1-9][0-9]{0,17}", text):
        raise SaslError("the server's number of iterations is not a number")
    iterations = int(text)
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise SaslError(
            f"the server asks for {iterations} iterations of the password: taken are {LEAST_ITERATIONS} to "
            f"{MOST_ITERATIONS}; make the user's credentials anew with iterations=8192"
        )
    return iterations


def decoded(what: str, text: str) -> bytes:
    """Base64 as the RFC has it."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SaslError(f"the server's {what} is not Base64") from None


def read(challenge: bytes) -> str:
    """A message of the server's as text."""
    if len(challenge) > MOST_BYTES:
        raise SaslError(f"the server's message of {len(challenge)} bytes is too long for SCRAM")
    try:
        return challenge.decode()
    except UnicodeDecodeError:
        raise SaslError("the server's message is not text") from None


def escaped(username: str) -> str:
    """A name in which commas and equals signs do not end it."""
    return username.replace("=", "=3D").replace(",", "=2C")
