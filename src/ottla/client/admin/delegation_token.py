"""Delegation tokens as an admin sees them (KIP-48). Values only. `repr` does not show the secret."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TokenInformation:
    """The owner and the lifetime of a token. Times are in ms since 1970, principals such as `User:alice`."""

    token_id: str
    owner: str
    token_requester: str
    """The user that created the token; "" if the broker does not return it."""
    renewers: tuple[str, ...]
    issue_timestamp: int
    expiry_timestamp: int
    """The expiry, unless the token is renewed."""
    max_timestamp: int
    """The time after which it cannot be renewed."""


@dataclass(frozen=True)
class DelegationToken:
    """Credentials that replace a password: the token id is the user name, `hmac_as_base64` the password."""

    token_info: TokenInformation
    hmac: bytes = field(repr=False)

    @property
    def hmac_as_base64(self) -> str:
        return base64.b64encode(self.hmac).decode()
