"""The end of a certificate's validity, read from its DER (RFC 5280), as Python's `ssl` has no function for an own certificate."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from datetime import UTC, datetime

VERSION, GENERALIZED_TIME = 0xA0, 0x18
FIELDS_BEFORE_VALIDITY = 3
"""Serial number, algorithm and issuer."""


def earliest_expiry(certificates: Iterable[str]) -> float:
    """Return the earliest end of validity of PEM certificates, in seconds since 1970. ValueError if one is malformed."""
    return min(map(read_expiry, certificates))


def read_expiry(certificate: str) -> float:
    """Return the end of validity of a PEM certificate, in seconds since 1970. ValueError if it is malformed."""
    _, content, _ = read_element(b64decode(certificate.split("-----")[2]))
    _, rest, _ = read_element(content)  # the signed part
    if rest[:1] == bytes((VERSION,)):
        rest = read_element(rest)[2]
    for _ in range(FIELDS_BEFORE_VALIDITY):
        rest = read_element(rest)[2]
    _, validity, _ = read_element(rest)
    kind, at, _ = read_element(read_element(validity)[2])
    text = at.decode("ascii")
    if kind != GENERALIZED_TIME:  # two digits of the year: 1950 to 2049
        text = ("19" if text >= "5" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def read_element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return the tag and the content of the first element, and what follows it."""
    if len(data) < 2:
        raise ValueError("a certificate ends early")
    start, size = 2, data[1]
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start])
    if start + size > len(data):
        raise ValueError("a certificate ends early")
    return data[0], data[start : start + size], data[start + size :]
