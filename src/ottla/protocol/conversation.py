"""Encode and decode whole frames, without their length prefix: header and message, for clients and brokers.

Pure: sockets and the matching of responses to requests belong to other modules.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, TypeVar

from ottla.errors import ErrorCode, ProtocolError, UnsupportedVersionError
from ottla.model import Part
from ottla.protocol.apis import APIS, ELSEWHERE, SERVED
from ottla.protocol.codec import Reader, Writer
from ottla.protocol.errors import EncodeError, MalformedError
from ottla.protocol.headers import (
    RequestHeader,
    after_tags,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from ottla.protocol.messages.api_versions import ApiVersionsResponse
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message
from ottla.protocol.sentences import shorten_error_messages

M = TypeVar("M", bound=Message)
UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


def encode_request(request: Message, version: int, correlation_id: int, client_id: str | None) -> list[Part]:
    """Return the parts of a request's frame; raise EncodeError or UnsupportedVersionError if it cannot be encoded."""
    plan = plan_of(type(request), version)
    header = RequestHeader(request.KEY, version, correlation_id, client_id)
    return Writer(encode_request_header(header, plan.flexible)).write(plan, request)


def decode_header(frame: memoryview, served: Container[int] = SERVED) -> tuple[RequestHeader, int]:
    """Return a request's header and the position of its body.

    Raises ProtocolError for a malformed header or an API that is not served. An unsupported version still returns its
    header; its body cannot be decoded.
    """
    key = int.from_bytes(frame[:2], "big", signed=True)
    if len(frame) >= 2 and key not in served:
        if key in ELSEWHERE:
            raise ProtocolError(f"this broker does not serve {ELSEWHERE[key]} (API key {key})")
        raise ProtocolError(f"no API has key {key}; this is not a request")
    header, position = decode_request_header(frame)
    api = APIS[header.api_key]
    if header.api_version in api.versions and header.api_version in api.flexible:
        position = after_tags(frame, position)
    return header, position


def decode_request(frame: memoryview, served: Container[int] = SERVED) -> tuple[RequestHeader, Any]:
    """Return a request with its header.

    Raise ProtocolError if malformed, UnsupportedVersionError for an unsupported version.
    """
    header, position = decode_header(frame, served)
    api = APIS[header.api_key]
    if header.api_version not in api.versions:
        raise UnsupportedVersionError(f"{api.name} v{header.api_version}: only versions {api.versions} are supported")
    return header, decode_body(api.request, header.api_version, frame, position)


def encode_response(response: Message, version: int, correlation_id: int) -> list[Part]:
    """Return the parts of a response's frame; error messages that are too long are cut."""
    plan = plan_of(type(response), version)
    header = encode_response_header(correlation_id, has_tags(type(response), version))
    try:
        return Writer(header).write(plan, response)
    except EncodeError:
        if not shorten_error_messages(response):
            raise
    return Writer(header).write(plan, response)


def decode_response(response_class: type[M], version: int, frame: memoryview) -> tuple[int, M]:
    """Return the correlation id and the response to a request of that version."""
    correlation_id, position = decode_response_header(frame, has_tags(response_class, version))
    if response_class is ApiVersionsResponse and frame[position : position + 2] == UNSUPPORTED:
        version = 0  # a broker that does not support the version responds with version 0, which any client can read
    return correlation_id, decode_body(response_class, version, frame, position)


def has_tags(response_class: type[Message], version: int) -> bool:
    """Return true if the response header has tagged fields; that of ApiVersions never does (KIP-511)."""
    return version in response_class.FLEXIBLE and response_class is not ApiVersionsResponse


def decode_body(cls: type[M], version: int, frame: memoryview, position: int) -> M:
    """Return the message from `position` to the end of the frame."""
    reader = Reader(frame, position)
    try:
        message: M = reader.read(plan_of(cls, version))
        reader.finish()
    except MalformedError as error:
        raise MalformedError(f"{cls.__name__} v{version} cannot be read: {error}") from None
    return message
