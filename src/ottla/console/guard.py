"""Who may ask the console for something.

Whoever reaches the loopback address is at home there, but so is every page that his browser has open. So the Host has to be
ours (a name that was bent to the loopback address is not), an Origin has to be the page's own, and what changes
something comes as JSON, which a browser sends to strangers only if these agree. Elsewhere a token is asked for.
Pure.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import NamedTuple

from ottla.loopback import allowed_hosts

READING = ("GET", "HEAD")


class Door(NamedTuple):
    """Where the console listens, and what opens it."""

    host: str
    port: int
    token: str | None
    """None on a loopback address."""

    @property
    def hosts(self) -> frozenset[str]:
        """The values of Host that are accepted on a loopback address."""
        return allowed_hosts(self.host, self.port)


class Refusal(NamedTuple):
    """Why not."""

    status: int
    sentence: str


def refusal(door: Door, method: str, path: str, headers: Mapping[str, str]) -> Refusal | None:
    """Why a request is not answered; None if it is. The names of `headers` are in small letters."""
    host = headers.get("host", "")
    if door.token is None and host.lower() not in door.hosts:
        return Refusal(403, f"this console is not at {host!r}; open it as http://127.0.0.1:{door.port}")
    origin = headers.get("origin")
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        return Refusal(403, f"a page of {origin!r} may not ask this console; open the console's own")
    if door.token is not None and path.startswith("/api/") and not knows(door.token, headers):
        return Refusal(401, "the token is missing or wrong; open the address that ottla console printed")
    if method not in READING and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return Refusal(415, "what changes something has to come as application/json")
    return None


def knows(token: str, headers: Mapping[str, str]) -> bool:
    """Whether a request carries the token."""
    given = headers.get("authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(given.encode(), token.encode())
