"""What a server keeps of a password for SCRAM: enough to check a proof, not enough to make one (RFC 5802)."""

from __future__ import annotations

from msgspec import Struct

from ottla.digests import are_same, hashed, mac, stretched
from ottla.protocol.sasl.scram import DIGESTS

LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16_384
"""Kafka's bounds of what is kept; more than the most would be work that anybody could ask for."""
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""By Kafka's numbers."""
NUMBERS = {name: number for number, name in MECHANISMS.items()}


class ScramCredential(Struct, frozen=True):
    """One user's, for one mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential([hidden], iterations={self.iterations})"


def credential_of(mechanism: str, password: str, salt: bytes, iterations: int = LEAST_ITERATIONS) -> ScramCredential:
    """That of a password; takes milliseconds, on purpose."""
    salted = stretched(DIGESTS[mechanism], password.encode(), salt, iterations)
    return credential_of_salted(mechanism, salted, salt, iterations)


def credential_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """That of a password which somebody else has salted already."""
    digest = DIGESTS[mechanism]
    client_key = mac(salted, b"Client Key", digest)
    stored_key = hashed(digest, client_key)
    return ScramCredential(salt, stored_key, mac(salted, b"Server Key", digest), iterations)


def is_password(mechanism: str, credential: ScramCredential, password: str) -> bool:
    """Whether this is the password; takes as long as making the credential did."""
    shown = credential_of(mechanism, password, credential.salt, credential.iterations)
    return are_same(shown.stored_key, credential.stored_key)


def decoy(mechanism: str, secret: bytes, username: str) -> ScramCredential:
    """A credential that nobody has the password of, always the same for a name: who guesses names learns nothing."""
    digest = DIGESTS[mechanism]
    drawn = [mac(secret, what + username.encode(), digest) for what in (b"salt ", b"stored ", b"server ")]
    return ScramCredential(drawn[0][:20], drawn[1], drawn[2], LEAST_ITERATIONS)
