"""Envelope: a broker hands a client's request on to the controller, and says whose it is (KIP-590)."""

from __future__ import annotations

from ottla.protocol.schema import Bool, Bytes, Int16, Message, String, message


@message(key=-1, versions="0", flexible="0+")
class DefaultPrincipalData(Message):
    """Who a client is; travels behind its version, within an envelope."""

    type: String = ""
    name: String = ""
    token_authenticated: Bool = False


@message(key=58, versions="0", flexible="0+")
class EnvelopeRequest(Message):
    request_data: Bytes = b""
    """The client's request with its header, as it would stand in a frame."""
    request_principal: Bytes | None = None
    client_host_address: Bytes = b""
    """Four or sixteen octets."""


@message(key=58, versions="0", flexible="0+")
class EnvelopeResponse(Message):
    response_data: Bytes | None = None
    """The answer with its header; nothing where there is an error."""
    error_code: Int16 = 0
