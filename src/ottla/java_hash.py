"""Java's `String.hashCode()`.

Kafka maps groups to coordinators by it, and the order of Java's hash sets follows from it.
"""

from __future__ import annotations

from functools import lru_cache

MASK = 0xFFFF_FFFF
SIGN = 0x8000_0000


def java_hash(text: str) -> int:
    """Return the hash of the UTF-16 units as an unsigned 32-bit number."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & MASK
    return value


@lru_cache(maxsize=1024)
def positive_java_hash(text: str) -> int:
    """Return its absolute value as in Kafka's `Utils.abs`: 0 for the smallest int, which has no positive counterpart.

    The results are kept because a broker finds the coordinator of the same group for each commit and each shared fetch.
    """
    value = java_hash(text)
    if value == SIGN:
        return 0
    return value if value < SIGN else MASK + 1 - value
