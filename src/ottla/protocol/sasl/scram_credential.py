"""The SCRAM credential that a server stores: sufficient to verify a proof, but not to create one (RFC 5802)."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from ottla.digests import are_same, expand_seed, hashed, mac, stretched
from ottla.protocol.sasl.scram import DIGESTS

LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 16_384
"""Kafka's limits; a larger count would allow any client to cause expensive work."""
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""Mechanisms by Kafka's numbers."""
NUMBERS = {name: number for number, name in MECHANISMS.items()}

SALT_BYTES = 24
"""The size of a random salt."""
ALPHABETS = (b"0123456789abcdef", b"0123456789abcdefghijklmnopqrstuvwxyz", bytes(range(0x20, 0x7F)))
"""Kafka's tools write a random number in base 36 as salt; other tools use other texts."""


class SaltShape(NamedTuple):
    """The properties of a credential that are visible before a proof."""

    size: int = SALT_BYTES
    iterations: int = LEAST_ITERATIONS
    alphabet: bytes = b""
    """The smallest of ALPHABETS that contains the salt; empty for arbitrary bytes."""
    first: bytes = b""
    """The first character, which is not uniformly distributed if a number is written as text."""


USUAL = SaltShape()


class ScramCredential(Struct, frozen=True):
    """The credential of a user for one mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential([hidden], iterations={self.iterations})"


def credential_of(mechanism: str, password: str, salt: bytes, iterations: int = LEAST_ITERATIONS) -> ScramCredential:
    """Return the credential of a password; takes milliseconds, on purpose."""
    salted = stretched(DIGESTS[mechanism], password.encode(), salt, iterations)
    return credential_of_salted(mechanism, salted, salt, iterations)


def credential_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Return the credential of a password that was salted by the client."""
    digest = DIGESTS[mechanism]
    client_key = mac(salted, b"Client Key", digest)
    stored_key = hashed(digest, client_key)
    return ScramCredential(salt, stored_key, mac(salted, b"Server Key", digest), iterations)


def is_password(mechanism: str, credential: ScramCredential, password: str) -> bool:
    """Return true if this is the password; takes as long as creating the credential."""
    shown = credential_of(mechanism, password, credential.salt, credential.iterations)
    return are_same(shown.stored_key, credential.stored_key)


def shape_of(salt: bytes, iterations: int) -> SaltShape:
    """Return the shape of a credential, after which decoys are modelled."""
    alphabet = next((each for each in ALPHABETS if set(salt) <= set(each)), b"")
    return SaltShape(len(salt), iterations, alphabet, salt[:1] if alphabet else b"")


def decoy(mechanism: str, secret: bytes, username: str, shape: SaltShape = USUAL) -> ScramCredential:
    """Return a credential without a known password: constant per name, in the shape of real credentials."""
    digest = DIGESTS[mechanism]
    about = f"{mechanism} {shape.size} {shape.iterations} {username}".encode()
    drawn = [mac(secret, what + about, digest) for what in (b"salt ", b"stored ", b"server ")]
    return ScramCredential(draw_salt(drawn[0], shape), drawn[1], drawn[2], shape.iterations)


def draw_salt(seed: bytes, shape: SaltShape) -> bytes:
    """Return a salt of the given shape, derived from the seed."""
    if not shape.alphabet:
        return expand_seed(seed, shape.size)
    # Two bytes per character, since with one byte the first characters of an alphabet would be more frequent.
    bytes_ = expand_seed(seed, 2 * shape.size)
    letters = (int.from_bytes(bytes_[at : at + 2], "big") for at in range(0, len(bytes_), 2))
    salt = bytes(shape.alphabet[each % len(shape.alphabet)] for each in letters)
    return shape.first + salt[len(shape.first) :]
