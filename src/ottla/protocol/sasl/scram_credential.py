"""What a server keeps of a password for SCRAM: enough to check a proof, not enough to make one (RFC 5802)."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from ottla.digests import are_same, expanded, hashed, mac, stretched
from ottla.protocol.sasl.scram import DIGESTS

LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16_384
"""Kafka's bounds of what is kept; more than the most would be work that anybody could ask for."""
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""By Kafka's numbers."""
NUMBERS = {name: number for number, name in MECHANISMS.items()}

SALT_BYTES = 24
"""Of a salt that is drawn here."""
ALPHABETS = (b"0123456789abcdef", b"0123456789abcdefghijklmnopqrstuvwxyz", bytes(range(0x20, 0x7F)))
"""Kafka's tools draw a number and write it to the base of 36; other tools write other text."""


class SaltShape(NamedTuple):
    """What can be seen of a credential before a proof, but for the bytes themselves."""

    size: int = SALT_BYTES
    iterations: int = LEAST_ITERATIONS
    alphabet: bytes = b""
    """The narrowest of ALPHABETS that has all of the salt; empty for any bytes."""
    first: bytes = b""
    """The first letter, which is not drawn evenly where a number is written as text."""


USUAL = SaltShape()


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


def shape_of(salt: bytes, iterations: int) -> SaltShape:
    """Return the shape of a credential, by which that of an unknown name is made."""
    alphabet = next((each for each in ALPHABETS if set(salt) <= set(each)), b"")
    return SaltShape(len(salt), iterations, alphabet, salt[:1] if alphabet else b"")


def decoy(mechanism: str, secret: bytes, username: str, shape: SaltShape = USUAL) -> ScramCredential:
    """Return a credential whose password is unknown. It is always the same for a name, and has the shape of users' credentials."""
    digest = DIGESTS[mechanism]
    about = f"{mechanism} {shape.size} {shape.iterations} {username}".encode()
    drawn = [mac(secret, what + about, digest) for what in (b"salt ", b"stored ", b"server ")]
    return ScramCredential(drawn_salt(drawn[0], shape), drawn[1], drawn[2], shape.iterations)


def drawn_salt(seed: bytes, shape: SaltShape) -> bytes:
    """Return a salt of that shape, which the seed decides."""
    if not shape.alphabet:
        return expanded(seed, shape.size)
    # Two bytes for a letter: of one, the first letters of an alphabet would come more often.
    bytes_ = expanded(seed, 2 * shape.size)
    letters = (int.from_bytes(bytes_[at : at + 2], "big") for at in range(0, len(bytes_), 2))
    salt = bytes(shape.alphabet[each % len(shape.alphabet)] for each in letters)
    return shape.first + salt[len(shape.first) :]
