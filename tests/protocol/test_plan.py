"""Properties of a value that are known before it is read: nullability and the minimum number of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.protocol.codec import Writer
from ottla.protocol.plan import least_bytes, plan_of, struct_plan
from ottla.protocol.schema import (
    ZERO_UUID,
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    UInt16,
    UInt32,
    Uuid,
    message,
    part,
    struct,
    tagged,
)
from tests.protocol.codecs import joined


@struct
class Place:
    name: String = ""
    height: Int16 = 0


@struct
class Fixed:
    tiny: Int8 = 0
    short: Int16 = 0
    number: Int32 = 0
    long: Int64 = 0
    short_positive: UInt16 = 0
    positive: UInt32 = 0
    fraction: Float64 = 0.0
    flag: Bool = False
    id: Uuid = ZERO_UUID


@struct
class Text:
    text: String = ""


@struct
class Octets:
    octets: Bytes = b""


@struct
class Batches:
    records: Records | None = None


@struct
class List:
    places: Sequence[Place] = ()


@struct
class Whole:
    place: Place = part(Place)


@struct
class Optional:
    place: Place | None = None


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("cls", [Place, Fixed, Text, Octets, Batches, List, Whole, Optional])
def test_a_struct_takes_at_least_what_its_emptiest_takes(cls: type[Any], flexible: bool) -> None:
    plan = struct_plan(cls, 0, flexible)
    assert least_bytes(plan) == len(joined(Writer().write(plan, cls())))


@struct
class Void:
    pass


def test_an_empty_struct_counts_as_one_byte_so_that_array_lengths_are_bounded() -> None:
    assert least_bytes(struct_plan(Void, 0, False)) == 1


@message(key=95, versions="0", flexible="0+")
class Tagged(Message):
    note: String | None = tagged(0, since=0, default=None)
    where: Place | None = tagged(1, since=0, default=None)


def test_a_tagged_struct_is_never_null_on_the_wire_and_a_tagged_text_may_be() -> None:
    steps = {step.name: step for _, step in plan_of(Tagged, 0).tags.values()}
    assert (steps["note"].nullable, steps["where"].nullable) == (True, False)


@message(key=94, versions="0", flexible="0+")
class Strange(Message):
    load: Records | None = tagged(0, since=0, default=None)


def test_records_in_a_tag_section_are_a_mistake_in_a_declaration() -> None:
    with pytest.raises(TypeError, match=r"^Strange\.load: records cannot be tagged$"):
        plan_of(Strange, 0)
