"""A SCRAM server written from RFC 5802 for the tests: it checks every message, and can be made to send wrong ones."""

from __future__ import annotations

import base64
import hashlib
import hmac

HASHES = {"SCRAM-SHA-256": hashlib.sha256, "SCRAM-SHA-512": hashlib.sha512}


class ScramServer:
    """One login of one user."""

    def __init__(self, mechanism: str, user: str, password: str, *, iterations: int = 4096) -> None:
        self.hash = HASHES[mechanism]
        self.user, self.password, self.iterations = user, password, iterations
        self.salt = b"0123456789abcdef"
        self.nonce_suffix = "xyz%$"
        self.first = self.server_first = ""

    def answer_first(self, message: bytes) -> bytes:
        """Return the salt for the user of the client's first message."""
        text = message.decode()
        assert text.startswith("n,,")
        self.first = text[3:]
        name, nonce = self.first.split(",")[:2]
        assert name == f"n={self.user}"
        salt = base64.b64encode(self.salt).decode()
        self.server_first = f"{nonce}{self.nonce_suffix},s={salt},i={self.iterations}"
        return self.server_first.encode()

    def answer_final(self, message: bytes) -> bytes:
        """Return the server's signature if the proof is valid."""
        without_proof, _, proof = message.decode().rpartition(",p=")
        binding, nonce = without_proof.split(",")
        assert binding == "c=biws"
        assert nonce == self.server_first.split(",")[0]
        said = f"{self.first},{self.server_first},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self.hash().name, self.password.encode(), self.salt, self.iterations)
        signature = self.mac(self.hash(self.mac(salted, b"Client Key")).digest(), said)
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        if self.hash(key).digest() != self.hash(self.mac(salted, b"Client Key")).digest():
            return b"e=invalid-proof"
        return b"v=" + base64.b64encode(self.mac(self.mac(salted, b"Server Key"), said))

    def mac(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, self.hash).digest()
