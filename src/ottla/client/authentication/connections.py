"""What a network client's connections are made with: encrypted and logged in as its settings say.

Loads what that needs, and for plaintext nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from ottla.client.authentication.security import WITH_LOGIN, tls_contexts
from ottla.client.authentication.settings import SecurityConfig
from ottla.clock import Clock
from ottla.network.channel import Channel, MakeChannel

if TYPE_CHECKING:
    from ottla.client.authentication.authenticator import Authenticator, Connections


def channel_maker(config: SecurityConfig) -> MakeChannel:
    """Makes channels, encrypted where the settings say so; ConfigError where a file of certificates will not do."""
    contexts = tls_contexts(config)
    if contexts is None:
        return Channel
    from ottla.network.tls import TlsChannel

    return partial(TlsChannel, contexts)


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
