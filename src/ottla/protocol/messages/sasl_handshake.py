"""SaslHandshake: which mechanism a client will log in by."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Message, String, message


@message(key=17, versions="0-1", flexible="none")
class SaslHandshakeRequest(Message):
    mechanism: String = ""


@message(key=17, versions="0-1", flexible="none")
class SaslHandshakeResponse(Message):
    error_code: Int16 = 0
    mechanisms: Sequence[String] = ()
    """Those that the broker takes."""
