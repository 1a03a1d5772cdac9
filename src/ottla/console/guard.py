"""Access checks of the console. Pure.

On a loopback address every local user has access, but so has every page in a browser on this machine. Therefore:

* The Host must be the console's own; a foreign name that resolves to the loopback address (DNS rebinding) is rejected.
* An Origin must be that of the console's page.
* A change must be sent as JSON, which a browser sends across origins only after a preflight.

On other addresses a token is required.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import NamedTuple

from ottla.loopback import allowed_hosts

READING = ("GET", "HEAD")


class ConsoleAccess(NamedTuple):
    """The address of the console, and its token."""

    host: str
    port: int
    token: str | None
    """None on a loopback address."""

    @property
    def hosts(self) -> frozenset[str]:
        """The values of Host that are accepted on a loopback address."""
        return allowed_hosts(self.host, self.port)


class AccessRefusal(NamedTuple):
    """The status and message of a rejected request."""

    status: int
    sentence: str


def check_access(door: ConsoleAccess, method: str, path: str, headers: Mapping[str, str]) -> AccessRefusal | None:
    """Return the reason to reject a request, or None. The names of `headers` are in lower case."""
    host = headers.get("host", "")
    if door.token is None and host.lower() not in door.hosts:
        return AccessRefusal(403, f"unexpected Host {host!r}: open the console as http://127.0.0.1:{door.port}")
    origin = headers.get("origin")
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        return AccessRefusal(403, f"requests from {origin!r} are not allowed: open the console's own page")
    if door.token is not None and path.startswith("/api/") and not has_token(door.token, headers):
        return AccessRefusal(401, "the token is missing or wrong; open the address that ottla console printed")
    if method not in READING and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return AccessRefusal(415, "a change must be sent as application/json")
    return None


def has_token(token: str, headers: Mapping[str, str]) -> bool:
    """Return true if a request carries the token."""
    given = headers.get("authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(given.encode(), token.encode())
