"""Damaged bytes are one clear error or another message, never anything else; compiled and plain agree."""

from __future__ import annotations

import random
import struct
import tracemalloc
from time import process_time
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.errors import ProtocolError
from ottla.protocol.codec import Plan
from ottla.protocol.conversation import decode_header, decode_request, encode_request
from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message
from tests.protocol.codecs import CODECS, PLAIN, joined, plan_for
from tests.protocol.values import MESSAGES, chances, ids, messages, tidy


def plans(cls: type[Message], version: int) -> list[tuple[ModuleType, Any]]:
    """Each codec, with the plan of a message in its classes."""
    return [(module, plan_for(module, plan_of(cls, version))) for module in CODECS.values()]


def outcome(module: ModuleType, plan: Plan, data: bytes) -> Any:
    """Return the decoded message, or the text of the error."""
    reader = module.Reader(data)
    try:
        message = reader.read(plan)
        reader.finish()
    except MalformedError as error:
        return str(error)
    return tidy(message)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes, cut short, or with a few of them changed, put in or taken out."""
    octets = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        at = chance.randrange(len(octets) + 1)
        octet = bytes([chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])])
        match chance.randrange(4):
            case 0:
                octets[at : at + 1] = octet
            case 1:
                octets[at:at] = octet
            case 2:
                del octets[at : at + chance.randrange(1, 5)]
            case 3:
                del octets[at:]
    return bytes(octets)


@pytest.mark.parametrize(("cls", "version"), MESSAGES, ids=ids)
def test_damaged_bytes_are_a_message_or_one_error(cls: type[Message], version: int) -> None:
    (module, plan), *others = plans(cls, version)
    some = messages(plan_of(cls, version))
    for chance in chances(5, cls):
        whole = joined(module.Writer().write(plan, some(chance)))
        for octets in [damaged(whole, chance) for _ in range(10)]:
            expected = outcome(module, plan, octets)
            for other, its_plan in others:
                found = outcome(other, its_plan, octets)
                # A damaged number may be none, which is not like itself.
                assert found == expected or ("nan" in repr(found) and repr(found) == repr(expected))


@pytest.mark.parametrize(("cls", "version"), MESSAGES, ids=ids)
def test_compiled_and_plain_write_the_same(cls: type[Message], version: int) -> None:
    (module, plan), *others = plans(cls, version)
    for message in map(messages(plan_of(cls, version)), chances(5, cls)):
        parts = module.Writer().write(plan, message)
        assert [other.Writer().write(its_plan, message) for other, its_plan in others] == [parts] * len(others)


@settings(max_examples=300, database=None)
@given(frame=st.one_of(st.binary(max_size=64), st.binary(max_size=40).map(lambda tail: b"\0\x03\0\x09" + tail)))
def test_any_frame_is_a_request_or_one_error(frame: bytes) -> None:
    for read in (decode_header, decode_request):
        try:
            read(memoryview(frame))
        except ProtocolError:
            continue


def test_every_shorter_frame_of_a_request_is_refused() -> None:
    whole = joined(encode_request(MetadataRequest(), 9, 7, "client"))
    for size in range(len(whole)):
        with pytest.raises(ProtocolError):
            decode_request(memoryview(whole)[:size])


COUNT = struct.pack(">i", 2**31 - 1)
COMPACT_COUNT = b"\xff\xff\xff\xff\x0f"


@pytest.mark.parametrize("module", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize(
    ("cls", "version", "front", "problem"),
    [
        (MetadataResponse, 5, bytes(4) + COUNT, "brokers: 2147483647 items are announced but 1000 bytes are left"),
        (MetadataResponse, 9, bytes(4) + COMPACT_COUNT, "brokers: 4294967294 items are announced but 1000 bytes"),
        (MetadataResponse, 9, bytes(4) + b"\x02" + bytes(4) + COMPACT_COUNT, "brokers[0].host: a text of 4294967294"),
        (ProduceRequest, 3, bytes(8) + b"\0\0\0\1\0\0\0\0\0\1" + bytes(4) + COUNT, "[0].records: 2147483647 bytes"),
    ],
    ids=["array", "compact array", "text", "records"],
)
def test_a_length_above_the_available_bytes_allocates_nothing(
    module: ModuleType, cls: type[Message], version: int, front: bytes, problem: str
) -> None:
    plan = plan_for(module, plan_of(cls, version))
    tracemalloc.start()
    started = process_time()
    assert problem in outcome(module, plan, front + bytes(1000))
    assert process_time() - started < 1
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


def test_an_uncompiled_codec_is_available_for_these_tests() -> None:
    assert str(PLAIN.__file__).endswith("codec.py")
