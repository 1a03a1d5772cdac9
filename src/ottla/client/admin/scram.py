"""SCRAM users as an admin sees them. Values only. `repr` does not show passwords."""

from __future__ import annotations

from dataclasses import dataclass, field

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Kafka's names and the numbers in the protocol."""
ITERATIONS = 4096
"""The minimum that a broker accepts, and the default of `kafka-configs`."""


@dataclass(frozen=True)
class UserScramCredentialUpsertion:
    """Set the password of a user."""

    user: str
    password: str | bytes = field(repr=False)
    mechanism: str = "SCRAM-SHA-256"
    iterations: int = ITERATIONS
    """The number of hash iterations, 4096 to 16384."""
    salt: bytes | None = field(default=None, repr=False)
    """None for a random salt."""


@dataclass(frozen=True)
class UserScramCredentialDeletion:
    """Delete the password of a user for one mechanism."""

    user: str
    mechanism: str = "SCRAM-SHA-256"
