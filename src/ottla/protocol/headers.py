"""Request and response headers.

The client id keeps its two-byte length even in flexible versions, so that any broker can read the header of any request
(KIP-511).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ottla.protocol.codec import Plan, Reader, ensure_fits
from ottla.protocol.errors import EncodeError, MalformedError

FIXED = struct.Struct(">hhih")
"""API key, version, correlation id, length of the client id."""
CORRELATION = struct.Struct(">i")
NO_TAGS = b"\0"
TAGS = Plan(lambda: None, [], {}, True, 0)
"""The tagged fields of a flexible header; none are defined yet."""


class RequestHeader(NamedTuple):
    """The header of a request, v1 or v2."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def encode_request_header(header: RequestHeader, flexible: bool) -> bytes:
    """Return the header as bytes; a flexible one has no tagged fields."""
    client_id = None if header.client_id is None else header.client_id.encode()
    try:
        fixed = FIXED.pack(*header[:3], -1 if client_id is None else len(client_id))
    except struct.error:
        raise EncodeError(f"{header} does not fit a request header") from None
    return b"".join([fixed, client_id or b"", NO_TAGS if flexible else b""])


def decode_request_header(frame: memoryview) -> tuple[RequestHeader, int]:
    """Return the header without its tagged fields, and its end. As lenient as Kafka, since C clients rely on this."""
    if len(frame) < FIXED.size:
        raise MalformedError(f"a frame of {len(frame)} bytes is too short for a request header")
    api_key, api_version, correlation_id, length = FIXED.unpack_from(frame)
    end = FIXED.size + max(length, 0)
    if end > len(frame):
        raise MalformedError(f"the client id in a request header has length {length}")
    client_id = None if length < 0 else str(frame[FIXED.size : end], "utf-8", "replace")
    if client_id is not None and not client_id.isascii():
        try:
            ensure_fits(client_id)
        except MalformedError as error:
            error.under("client_id")
            raise
    return RequestHeader(api_key, api_version, correlation_id, client_id), end


def encode_response_header(correlation_id: int, flexible: bool) -> bytes:
    """Return the header of a response, v0 or v1."""
    return CORRELATION.pack(correlation_id) + (NO_TAGS if flexible else b"")


def decode_response_header(frame: memoryview, flexible: bool) -> tuple[int, int]:
    """Return the correlation id, and the position of the body."""
    if len(frame) < CORRELATION.size:
        raise MalformedError(f"a frame of {len(frame)} bytes is too short for a response")
    (correlation_id,) = CORRELATION.unpack_from(frame)
    return correlation_id, after_tags(frame, CORRELATION.size) if flexible else CORRELATION.size


def after_tags(frame: memoryview, position: int) -> int:
    """Return the position after the tagged fields that start at `position`."""
    if position < len(frame) and not frame[position]:
        return position + 1  # nearly always empty
    reader = Reader(frame, position)
    reader.read(TAGS)
    return reader.position
