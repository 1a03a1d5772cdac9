"""Channels for connections of our own making, encrypted where the settings say so. For plaintext nothing more is loaded."""

from __future__ import annotations

from functools import partial

from ottla.network.channel import Channel, MakeChannel
from ottla.security.security import tls_contexts
from ottla.security.security_config import SecurityConfig


def channel_maker(config: SecurityConfig) -> MakeChannel:
    """Makes channels; ConfigError where a file of certificates will not do."""
    contexts = tls_contexts(config)
    if contexts is None:
        return Channel
    from ottla.network.tls import TlsChannel

    return partial(TlsChannel, contexts)
