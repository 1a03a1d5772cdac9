"""What comes in, read: requests out of frames, and addresses."""

from __future__ import annotations

from typing import Any

from ottla.errors import ProtocolError
from ottla.protocol.codec import Reader
from ottla.protocol.errors import MalformedError
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message


def plain_address(address: tuple[str, int]) -> tuple[str, int]:
    """An IPv4 address as such, also where it came through an IPv6 socket."""
    return address[0].removeprefix("::ffff:"), address[1]


def read_request(cls: type[Message], version: int, frame: memoryview, position: int) -> Any:
    """The request in a frame; ProtocolError where it is none.

    Bytes behind it are passed over, as Kafka does: librdkafka 2.16 sends three too many when it asks for all topics.
    """
    try:
        return Reader(frame, position).read(plan_of(cls, version))
    except MalformedError as error:
        raise ProtocolError(f"{cls.__name__} v{version} cannot be read: {error}") from None
