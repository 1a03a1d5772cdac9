"""Whole frames, headers included, are those of kafka-python, for every message and version."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.protocol.apis import api_of
from ottla.protocol.codec import Plan, Step
from ottla.protocol.conversation import encode_request, encode_response
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message
from tests.protocol.kafka_python_bridge import LACKING, NEWER, their_class, their_frame, to_theirs
from tests.protocol.values import MESSAGES, Draw, chances, ids, integers, messages


def narrow(plan: Plan, step: Step) -> Draw | None:
    """It takes most sets of operations as sets."""
    return integers(0, 2**31 - 1) if step.name.endswith("authorized_operations") else None


SPOKEN = [
    (cls, version)
    for cls, version in MESSAGES
    if api_of(cls).name not in LACKING and (api_of(cls).name, version) not in NEWER
]


@pytest.mark.parametrize(("cls", "version"), SPOKEN, ids=ids)
def test_our_frames_are_those_of_kafka_python(cls: type[Message], version: int) -> None:
    some = messages(plan_of(cls, version), narrow)
    for chance in chances(8, cls):
        frames_are_alike(some(chance), version)


def frames_are_alike(message: Any, version: int) -> None:
    cls = type(message)
    theirs = to_theirs(message, their_class(cls), version)

    if cls is api_of(cls).request:
        parts = encode_request(message, version, 7, "a client")
    else:
        parts = encode_response(message, version, 7)

    assert b"".join(map(bytes, parts)) == their_frame(theirs, 7, "a client")  # type: ignore[arg-type]
