"""Read requests from frames, and addresses from sockets."""

from __future__ import annotations

from typing import Any

from ottla.errors import ProtocolError
from ottla.protocol.codec import Reader
from ottla.protocol.errors import MalformedError
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message


def plain_address(address: tuple[str, int]) -> tuple[str, int]:
    """Return an address with an IPv4 host as such, also from an IPv6 socket."""
    return address[0].removeprefix("::ffff:"), address[1]


def read_request(cls: type[Message], version: int, frame: memoryview, position: int) -> Any:
    """Return the request in a frame. Raise ProtocolError if it is malformed.

    Bytes after it are ignored, as in Kafka: librdkafka 2.16 sends three too many when it requests all topics.
    """
    try:
        return Reader(frame, position).read(plan_of(cls, version))
    except MalformedError as error:
        raise ProtocolError(f"{cls.__name__} v{version} cannot be read: {error}") from None
