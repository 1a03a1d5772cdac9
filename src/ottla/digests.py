"""Hash functions for passwords, tokens and proofs, from the standard library, imported on first use.

`hashlib` imports OpenSSL, 3.5 MB and 4 ms, which a broker without logins does not need.
"""

from __future__ import annotations

import base64
import os


def mac(key: bytes, data: bytes, name: str) -> bytes:
    """Return the HMAC (RFC 2104) with a hash such as `sha256`."""
    import hmac

    return hmac.digest(key, data, name)


def hashed(name: str, data: bytes) -> bytes:
    """Return the hash of some data."""
    import hashlib

    return hashlib.new(name, data).digest()


def compute_fingerprint(data: bytes) -> bytes:
    """Return an 8-byte fingerprint of some data (BLAKE2b, RFC 7693)."""
    import hashlib

    return hashlib.blake2b(data, digest_size=8).digest()


def expand_seed(seed: bytes, size: int) -> bytes:
    """Return `size` bytes derived from a seed (SHAKE-256, FIPS 202)."""
    import hashlib

    return hashlib.shake_256(seed).digest(size)


def stretched(name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Return PBKDF2 (RFC 8018): takes milliseconds, on purpose, and lets other threads run meanwhile."""
    import hashlib

    return hashlib.pbkdf2_hmac(name, password, salt, iterations)


def are_same(one: bytes, other: bytes) -> bool:
    """Return true if both are equal; the time does not depend on the position of a difference."""
    import hmac

    return hmac.compare_digest(one, other)


def nonce() -> str:
    """Return 32 random characters: letters, digits, `-` and `_`."""
    return base64.urlsafe_b64encode(os.urandom(24)).decode()
