"""`String.hashCode()` of Java: by it Kafka's coordinators share out keys, and its sets hold what they hold in some order."""

from __future__ import annotations

MASK = 0xFFFF_FFFF
SIGN = 0x8000_0000


def java_hash(text: str) -> int:
    """The hash over UTF-16 units, as 32 bits without a sign."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & MASK
    return value


def positive_java_hash(text: str) -> int:
    """Its absolute value, as Kafka's coordinators take it: 0 for the least int, which has no positive counterpart."""
    value = java_hash(text)
    if value == SIGN:
        return 0
    return value if value < SIGN else MASK + 1 - value
