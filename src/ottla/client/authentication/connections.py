"""Who logs a network client's connections in, and how it is woken. Loads what that needs, and for plaintext nothing."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from ottla.clock import Clock
from ottla.security.security import WITH_LOGIN
from ottla.security.security_config import SecurityConfig

if TYPE_CHECKING:
    from ottla.client.authentication.authenticator import Authenticator, Connections


def maybe_authenticator(
    config: SecurityConfig, connections: Connections, wake: Callable[[], None], clock: Clock, random: Random
) -> Authenticator | None:
    """Who logs connections in; None where nobody needs to. Does not keep `connections`, which keep it."""
    if config.security_protocol not in WITH_LOGIN:
        return None
    from ottla.client.authentication.authenticator import Authenticator

    return Authenticator(config, weakref.proxy(connections), clock, random, wake)


def weak_wakeup(client: object) -> Callable[[], None]:
    """Wakes a network client if it is still there, and does not keep it."""
    known = weakref.ref(client)

    def wake() -> None:
        found = known()
        if found is not None and not found.closed:  # type: ignore[attr-defined]
            found.wakeup()  # type: ignore[attr-defined]

    return wake
