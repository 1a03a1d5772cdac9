"""SCRAM on the client side: both sides prove that they know the password, without sending it (RFC 5802, RFC 7677).

client                                     server
n,,n=user,r=nonce                    ──►   r=nonce+own,s=salt,i=iterations
c=biws,r=nonce+own,p=proof           ──►   v=signature

The salted password is PBKDF2 of the password. The client's proof is ClientKey XOR HMAC(StoredKey, messages); the server
knows only StoredKey, the hash of ClientKey, and its signature proves that it knows ServerKey. Kafka uses no channel
binding, and no SASLprep for the password.
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
"""The limit protects the client's CPU from a malicious server; Kafka's maximum is 16,384."""
MOST_BYTES = 8192
"""The maximum size of a message."""
BEFORE = "n,,"
"""No channel binding."""
ERROR = re.compile(r"e=([ -+\--~]{1,100})")


class ScramConversation:
    """Three messages: user name, proof, and the check of the server's signature."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str, *, token: bool = False) -> None:
        """`nonce` is random printable ASCII without a comma.

        With `token`, name and password are a delegation token's id and HMAC.
        """
        assert nonce.isascii()
        assert nonce.isprintable()
        assert nonce
        assert "," not in nonce
        self._digest = DIGESTS[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        extension = ",tokenauth=true" if token else ""
        self._first = f"n={escape_username(username)},r={nonce}{extension}"
        self._signature: bytes | None = None
        self._is_started = False
        self.complete = False

    def next(self, challenge: bytes) -> bytes | None:
        """Return the first message, then the final one, then None if the server's signature is valid."""
        if not self._is_started:
            self._is_started = True
            return (BEFORE + self._first).encode()
        if self._signature is None:
            return self._prove(challenge)
        if not self.complete:
            self._check(challenge)
            self.complete = True
        return None

    def _prove(self, challenge: bytes) -> bytes:
        text = parse_fields(challenge)
        nonce, salt, iterations = parse_server_first(text)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("the server's nonce does not continue the client's nonce")
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
        text = parse_fields(challenge)
        refused = ERROR.match(text)
        if refused:
            raise SaslError(f"the server rejected the proof: {refused[1]}")
        name, _, value = text.partition(",")[0].partition("=")
        if name != "v":
            raise SaslError("the server's last message has no signature")
        assert self._signature is not None
        if not are_same(decode_field("signature", value), self._signature):
            raise SaslError("the server's signature is wrong: it does not know the password, and must not be trusted")

    def _mac(self, key: bytes, data: bytes) -> bytes:
        return mac(key, data, self._digest)


def parse_server_first(text: str) -> tuple[str, bytes, int]:
    """Return nonce, salt and iterations of the server's first message, which must start with them in this order."""
    refused = ERROR.match(text)
    if refused:
        raise SaslError(f"the server rejected the user: {refused[1]}")
    parts = [part.partition("=") for part in text.split(",")]
    if parts[0][0] == "m":
        raise SaslError("the server demands an unknown SCRAM extension")
    if [name for name, _, _ in parts[:3]] != ["r", "s", "i"]:
        raise SaslError("the server's first message is not a SCRAM message")
    salt = decode_field("salt", parts[1][2])
    if not salt:
        raise SaslError("the server's salt is empty")
    return parts[0][2], salt, checked_iterations(parts[2][2])


def checked_iterations(text: str) -> int:
    """Return the iteration count; raise SaslError if it is too small to protect the password, or too large."""
    if not re.fullmatch(r"[1-9][0-9]{0,17}", text):
        raise SaslError("the server's number of iterations is not a number")
    iterations = int(text)
    if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        raise SaslError(
            f"the server demands {iterations} iterations: accepted are {LEAST_ITERATIONS} to "
            f"{MOST_ITERATIONS}; create the user's credentials again with iterations=8192"
        )
    return iterations


def decode_field(what: str, text: str) -> bytes:
    """Decode the Base64 of a field."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SaslError(f"the server's {what} is not Base64") from None


def parse_fields(challenge: bytes) -> str:
    """Return a message of the server as text."""
    if len(challenge) > MOST_BYTES:
        raise SaslError(f"the server's message of {len(challenge)} bytes is too long for SCRAM")
    try:
        return challenge.decode()
    except UnicodeDecodeError:
        raise SaslError("the server's message is not text") from None


def escape_username(username: str) -> str:
    """Escape commas and equals signs in a user name."""
    return username.replace("=", "=3D").replace(",", "=2C")
