"""Channels for outgoing connections, encrypted if the settings demand it; TLS modules are imported only then."""

from __future__ import annotations

from functools import partial

from ottla.network.channel import Channel, MakeChannel
from ottla.security.security import tls_contexts
from ottla.security.security_config import SecurityConfig


def channel_maker(config: SecurityConfig) -> MakeChannel:
    """Return the factory of channels; raise ConfigError if a certificate file is invalid."""
    contexts = tls_contexts(config)
    if contexts is None:
        return Channel
    from ottla.network.tls import TlsChannel

    return partial(TlsChannel, contexts)
