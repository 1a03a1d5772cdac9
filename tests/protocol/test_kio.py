"""Our bytes are those of an independent encoder, and its values are ours, for every message and version."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.apis import api_of
from ottla.protocol.codec import Reader, Writer
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message
from tests.protocol.kio_bridge import kio_class, kio_decode, kio_encode, narrowed_for, to_kio
from tests.protocol.values import MESSAGES, chances, ids, messages, tidy

# kio has the messages of Kafka 4.2; `interop/test_messages.py` compares newer ones with those of Java's classes.
NEWER = {
    "StreamsGroupHeartbeat": 1,
    "StreamsGroupDescribe": 1,
    "ApiVersions": 5,
    "DeleteGroups": 3,
    "TxnOffsetCommit": 6,
}
"""The first version of a message that kio does not have."""
NEWER |= {"StreamsGroupTopologyDescriptionUpdate": 0, "UnregisterController": 0}
SPOKEN = [(cls, version) for cls, version in MESSAGES if version < NEWER.get(api_of(cls).name, version + 1)]


@pytest.mark.parametrize(("cls", "version"), SPOKEN, ids=ids)
def test_both_encoders_write_the_same_bytes_and_decode_each_other(cls: type[Message], version: int) -> None:
    some = messages(plan_of(cls, version), narrowed_for(kio_class(cls, version)))
    for chance in chances(15, cls):
        both_agree_on(some(chance), version)


@pytest.mark.parametrize("size", [126, 127, 128, 16_382, 16_383, 32_767])
@pytest.mark.parametrize("version", [8, 12], ids=["four octets", "as few as do"])
def test_both_write_the_length_of_a_long_text_and_of_a_long_list_alike(size: int, version: int) -> None:
    both_agree_on(MetadataRequest([MetadataRequestTopic(name="n" * size)]), version)
    both_agree_on(MetadataRequest([MetadataRequestTopic(name="n")] * size), version)


def both_agree_on(message: Any, version: int) -> None:
    """Our bytes are theirs, and each understands the other's."""
    cls = type(message)
    plan, theirs = plan_of(cls, version), kio_class(cls, version)
    entity = to_kio(message, theirs)

    ours = b"".join(map(bytes, Writer().write(plan, message)))  # type: ignore[arg-type]

    assert ours == kio_encode(entity)
    assert kio_decode(theirs, ours) == entity
    assert tidy(Reader(ours).read(plan)) == tidy(message)
