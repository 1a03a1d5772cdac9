"""Delegation tokens as an admin sees them (KIP-48).

Values only. What one logs in with is in no representation.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TokenInformation:
    """Whose a token is, and how long; times are in ms since 1970, principals such as `User:alice`."""

    token_id: str
    owner: str
    token_requester: str
    """Who had it made; "" where the broker does not tell."""
    renewers: tuple[str, ...]
    issue_timestamp: int
    expiry_timestamp: int
    """When it ends unless it is renewed."""
    max_timestamp: int
    """When it ends for good."""


@dataclass(frozen=True)
class DelegationToken:
    """Something to log in by that is no password: the token's id is the user name, `hmac_as_base64` the password."""

    token_info: TokenInformation
    hmac: bytes = field(repr=False)

    @property
    def hmac_as_base64(self) -> str:
        return base64.b64encode(self.hmac).decode()
