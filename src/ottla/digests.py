"""What passwords, tokens and proofs are hashed with: the standard library's, loaded when the first is.

`hashlib` brings OpenSSL along, 3.5 MB and 4 ms that a broker to which nobody logs in does without.
"""

from __future__ import annotations

import base64
import os


def mac(key: bytes, data: bytes, name: str) -> bytes:
    """HMAC (RFC 2104) by a hash such as `sha256`."""
    import hmac

    return hmac.digest(key, data, name)


def hashed(name: str, data: bytes) -> bytes:
    """The hash of that name of some data."""
    import hashlib

    return hashlib.new(name, data).digest()


def mark(data: bytes) -> bytes:
    """Eight bytes that tell this data from other data (BLAKE2b, RFC 7693)."""
    import hashlib

    return hashlib.blake2b(data, digest_size=8).digest()


def expanded(seed: bytes, size: int) -> bytes:
    """Return so many bytes that a seed decides (SHAKE-256, FIPS 202)."""
    import hashlib

    return hashlib.shake_256(seed).digest(size)


def stretched(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """PBKDF2 (RFC 8018): takes milliseconds, on purpose, and lets other threads run meanwhile."""
    import hashlib

    return hashlib.pbkdf2_hmac(name, password, salt, iterations)


def are_same(one: bytes, other: bytes) -> bool:
    """Whether they are equal, in a time that does not tell where they differ."""
    import hmac

    return hmac.compare_digest(one, other)


def nonce() -> str:
    """What nobody can guess, as 32 letters, digits, `-` and `_`."""
    return base64.urlsafe_b64encode(os.urandom(24)).decode()
