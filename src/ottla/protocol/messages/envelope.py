"""Envelope: a broker forwards a client's request to the controller, with the client's principal (KIP-590)."""

from __future__ import annotations

from ottla.protocol.schema import Bool, Bytes, Int16, Message, String, message


@message(key=-1, versions="0", flexible="0+")
class DefaultPrincipalData(Message):
    """The principal of the client, with a preceding version number, in an envelope."""

    type: String = ""
    name: String = ""
    token_authenticated: Bool = False


@message(key=58, versions="0", flexible="0+")
class EnvelopeRequest(Message):
    request_data: Bytes = b""
    """The client's request with its header, as in a frame."""
    request_principal: Bytes | None = None
    client_host_address: Bytes = b""
    """The client's address, 4 or 16 bytes."""


@message(key=58, versions="0", flexible="0+")
class EnvelopeResponse(Message):
    response_data: Bytes | None = None
    """The response with its header; None on an error."""
    error_code: Int16 = 0
