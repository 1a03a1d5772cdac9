"""SaslHandshake: select the mechanism of a login."""

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
    """The mechanisms that the broker supports."""
