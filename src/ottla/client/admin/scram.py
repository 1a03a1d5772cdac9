"""Users who log in by SCRAM, as an admin sees them.

Values only. Passwords are in no representation.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Kafka's names and the protocol's numbers."""
ITERATIONS = 4096
"""The fewest that a broker takes, and what `kafka-configs` takes where it is not told."""


@dataclass(frozen=True)
class UserScramCredentialUpsertion:
    """A user who may log in with this password, or from now on with this one."""

    user: str
    password: str | bytes = field(repr=False)
    mechanism: str = "SCRAM-SHA-256"
    iterations: int = ITERATIONS
    """How often the password is hashed, 4096 to 16384."""
    salt: bytes | None = field(default=None, repr=False)
    """None for one by chance."""


@dataclass(frozen=True)
class UserScramCredentialDeletion:
    """A user who may not log in by this mechanism any more."""

    user: str
    mechanism: str = "SCRAM-SHA-256"
