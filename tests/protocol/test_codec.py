"""The values that a plan can encode, and the errors of reading and writing."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest

from ottla.errors import UnsupportedVersionError
from ottla.model import FileSlice
from ottla.protocol.errors import EncodeError, MalformedError
from ottla.protocol.plan import plan_of
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
    since,
    struct,
    tagged,
)
from tests.protocol.codecs import CODECS, joined, plan_for
from tests.protocol.values import tidy

pytestmark = pytest.mark.parametrize("module", CODECS.values(), ids=CODECS)


@struct
class Place:
    name: String = ""
    height: Int16 = 0


@message(key=99, versions="0-3", flexible="2+")
class Everything(Message):
    tiny: Int8 = 0
    number: Int32 = 0
    long: Int64 = 0
    short_positive: UInt16 = 0
    positive: UInt32 = 0
    fraction: Float64 = 0.0
    flag: Bool = False
    text: String | None = None
    octets: Bytes | None = None
    id: Uuid = ZERO_UUID
    place: Place | None = None
    numbers: Sequence[Int32] = ()
    strict: Int32 = since(1, default=-1)
    loose: Int32 = since(1, default=-1, ignorable=True)
    lists: Sequence[Int32] = since(1, default=())
    note: String = tagged(0, since=2, default="")
    where: Place | None = tagged(5, since=2, default=None)
    scores: Sequence[Int16] = tagged(3, since=2, default=(), ignorable=True)
    records: Records | None = None


@message(key=98, versions="0-1", flexible="1+")
class Parcel(Message):
    origin: Place = part(Place)
    target: Place = part(Place)


@message(key=97, versions="0")
class Nothing(Message):
    pass


@message(key=96, versions="0")
class Load(Message):
    octets: Bytes = b""


FULL = Everything(
    tiny=-128,
    number=-(2**31),
    long=-(2**63),
    short_positive=2**16 - 1,
    positive=2**32 - 1,
    fraction=-0.5,
    flag=True,
    text="Ottla è 漢 🎏",
    octets=b"\0\xff",
    id=UUID(int=2**127 + 1),
    place=Place("hill", -1),
    numbers=[1, 2**31 - 1],
    records=b"abc",
)


def write(module: ModuleType, value: Any, version: int) -> list[Any]:
    parts: list[Any] = module.Writer().write(plan_for(module, plan_of(type(value), version)), value)
    return parts


def read(module: ModuleType, data: bytes, version: int, cls: type[Message] = Everything) -> Any:
    reader = module.Reader(data)
    value = reader.read(plan_for(module, plan_of(cls, version)))
    reader.finish()
    return value


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_kind_of_value_is_decoded_as_encoded(module: ModuleType, version: int) -> None:
    assert tidy(read(module, joined(write(module, FULL, version)), version)) == tidy(FULL)


@pytest.mark.parametrize("version", [0, 2])
def test_the_least_message_comes_back_as_its_defaults(module: ModuleType, version: int) -> None:
    assert tidy(read(module, joined(write(module, Everything(), version)), version)) == tidy(Everything())


def test_no_part_is_empty_but_that_of_a_message_without_anything(module: ModuleType) -> None:
    assert [bytes(part) for part in write(module, Nothing(), 0)] == [b""]
    assert [len(part) for part in write(module, Load(octets=bytes(5000)), 0)] == [4, 5000]


def test_tagged_fields_travel_in_the_order_of_their_tags(module: ModuleType) -> None:
    said = Everything(note="hi", where=Place("sea", 0), scores=[7])
    data = joined(write(module, said, 2))
    assert data.endswith(b"\x03\x00\x03\x03hi\x03\x03\x02\0\7\x05\x07\x04sea\0\0\0")
    again = read(module, data, 2)
    assert (again.note, again.where, again.scores) == ("hi", Place("sea", 0), [7])


def test_an_unknown_tag_is_skipped(module: ModuleType) -> None:
    data = joined(write(module, Everything(), 2))[:-1]
    again = read(module, data + b"\x02\x00\x03\x03hi\xff\x7f\x02??", 2)
    assert again.note == "hi"


@pytest.mark.parametrize(
    ("tags", "problem"),
    [
        (b"\x01\x00\x04\x03hi?", "note: 1 bytes are left over"),
        (b"\x01\x00\x02\x03hi", "note: 2 bytes are announced but 1 are left"),
        (b"\x01\x07\x09", "9 bytes are announced but 0 are left"),
        (b"\xff\xff\xff\xff\x0f", "1 bytes are announced but 0 are left"),
    ],
)
def test_a_tag_section_with_wrong_sizes_is_rejected(module: ModuleType, tags: bytes, problem: str) -> None:
    with pytest.raises(MalformedError, match=problem):
        read(module, joined(write(module, Everything(), 2))[:-1] + tags, 2)


@pytest.mark.parametrize("number", [b"\x80" * 5 + b"\x01", b"\xff\xff\xff\xff\x7f", b"\xff" * 9])
def test_a_number_of_more_than_32_bits_is_refused(module: ModuleType, number: bytes) -> None:
    with pytest.raises(MalformedError, match="32 bits"):
        read(module, joined(write(module, Everything(), 2))[:-1] + number, 2)


def test_of_text_that_is_not_utf_8_the_rest_is_read_as_by_kafka(module: ModuleType) -> None:
    data = joined(write(module, Everything(place=Place("abc")), 0)).replace(b"abc", b"a\xffc")
    assert read(module, data, 0).place.name == "a\ufffdc"


def test_a_text_that_could_not_be_written_again_is_refused(module: ModuleType) -> None:
    short, long = (joined(write(module, Everything(place=Place("a" * size)), 0)) for size in (10_922, 10_923))
    assert write(module, read(module, short.replace(b"a", b"\xff"), 0), 0)
    with pytest.raises(MalformedError, match=r"place\.name: no UTF-8, and 32769 bytes .* limit is 32767"):
        read(module, long.replace(b"a", b"\xff"), 0)


def test_a_null_where_there_must_be_a_value_is_refused(module: ModuleType) -> None:
    data = joined(write(module, Everything(place=Place("abc")), 0)).replace(b"\0\3abc", b"\xff\xff")
    with pytest.raises(MalformedError, match=r"place\.name: must not be null"):
        read(module, data, 0)


def test_a_length_below_null_is_refused_where_there_must_be_a_value(module: ModuleType) -> None:
    data = joined(write(module, Everything(place=Place("abc")), 0)).replace(b"\0\3abc", b"\xff\xfe")
    with pytest.raises(MalformedError, match=r"place\.name: its length is -2"):
        read(module, data, 0)


@pytest.mark.parametrize("length", [b"\xff\xff", b"\xff\xfe", b"\x80\0"])
def test_any_length_below_zero_is_null_where_that_may_be_as_for_kafka(module: ModuleType, length: bytes) -> None:
    data = joined(write(module, Everything(text="abc"), 0)).replace(b"\0\3abc", length)
    assert read(module, data, 0).text is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"tiny": 128}, "tiny: 128 is not int8"),
        ({"tiny": -129}, "tiny: -129 is not int8"),
        ({"number": 2**31}, "number: 2147483648 is not int32"),
        ({"long": 2**63}, "long: 9223372036854775808 is not int64"),
        ({"long": -(2**63) - 1}, "long: -9223372036854775809 is not int64"),
        ({"short_positive": -1}, "short_positive: -1 is not uint16"),
        ({"short_positive": 2**16}, "short_positive: 65536 is not uint16"),
        ({"positive": 2**32}, "positive: 4294967296 is not uint32"),
        ({"positive": 2**64}, "positive: 18446744073709551616 is not uint32"),
        ({"number": 1.0}, "number: 1.0 is not int32"),
        ({"number": None}, "number: None is not int32"),
        ({"number": "1"}, "number: '1' is not int32"),
        ({"fraction": "x"}, "fraction: 'x' is not float64"),
        ({"text": 7}, "text: 7 is not string"),
        ({"text": "\ud800"}, r"text: '\\ud800' is not string"),
        ({"text": "x" * 32768}, "text: is too long: 32768, and the limit is 32767"),
        ({"octets": "text"}, "octets: 'text' is not bytes"),
        ({"id": "text"}, "id: 'text' is not uuid"),
        ({"place": "text"}, "place: 'text' is not struct"),
        ({"place": Place("x", 70000)}, "place.height: 70000 is not int16"),
        ({"numbers": None}, "numbers: must not be None"),
        ({"numbers": "123"}, "numbers: '123' is not array"),
        ({"numbers": 5}, "numbers: 5 is not array"),
        ({"numbers": [1, 2, "x"]}, r"numbers\[2\]: 'x' is not int32"),
        ({"scores": [1, 70000]}, r"scores\[1\]: 70000 is not int16"),
        ({"where": Place(name=5)}, "where.name: 5 is not string"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(module: ModuleType, value: Any, problem: str) -> None:
    with pytest.raises(EncodeError, match=f"^{problem}$"):
        write(module, Everything(**value), 2)


@pytest.mark.parametrize("value", [{"strict": 5}, {"lists": [1]}, {"note": "x"}, {"where": Place()}])
def test_a_field_missing_in_a_version_is_not_dropped_silently(module: ModuleType, value: Any) -> None:
    (name,) = value
    with pytest.raises(UnsupportedVersionError, match=f"Everything v0 has no field {name}"):
        write(module, Everything(**value), 0)


@pytest.mark.parametrize("value", [{"loose": 5}, {"scores": [1]}, {"strict": -1}, {"lists": []}])
def test_ignorable_fields_are_dropped(module: ModuleType, value: Any) -> None:
    assert joined(write(module, Everything(**value), 0)) == joined(write(module, Everything(), 0))


@pytest.mark.parametrize("version", [0, 1])
def test_a_part_is_there_without_being_given(module: ModuleType, version: int) -> None:
    parcel = Parcel()
    parcel.target.name = "hill"
    again = read(module, joined(write(module, parcel, version)), version, Parcel)
    assert again == Parcel(Place(), Place("hill")) != Parcel()


def test_a_part_cannot_be_taken_away(module: ModuleType) -> None:
    with pytest.raises(EncodeError, match=r"^target: must not be None$"):
        write(module, Parcel(target=None), 0)  # type: ignore[arg-type]


def test_big_bytes_travel_uncopied(module: ModuleType) -> None:
    big = bytes(5000)
    parts = write(module, Everything(octets=big, records=memoryview(big)), 1)
    assert sum(part is big for part in parts) == 1
    assert [len(part) for part in parts if len(part) >= 5000] == [5000, 5000]
    assert read(module, joined(parts), 1).octets == big


def test_records_may_be_in_a_file_or_in_pieces(module: ModuleType) -> None:
    with tempfile.TemporaryFile() as file:
        piece = FileSlice(file, 3, 4)
        parts = write(module, Everything(records=[b"ab", piece, bytearray(b"cd")]), 1)
        assert [part for part in parts if isinstance(part, FileSlice)] == [piece]
        assert joined(parts[:1]).endswith(b"\0\0\0\x08ab")
        assert joined(parts[-1:]) == b"cd"
        assert sum(map(len, parts)) == len(joined(write(module, Everything(records=bytes(8)), 1)))


@pytest.mark.parametrize("version", [1, 2])
def test_records_of_two_gib_are_refused_by_name(module: ModuleType, version: int) -> None:
    with tempfile.TemporaryFile() as file:
        write(module, Everything(records=FileSlice(file, 0, 2**31 - 1)), version)
        with pytest.raises(EncodeError, match=r"^records: is too long: 2147483648, and the limit is 2147483647$"):
            write(module, Everything(records=FileSlice(file, 0, 2**31)), version)


def test_records_come_back_as_a_view_of_the_frame(module: ModuleType) -> None:
    frame = joined(write(module, Everything(records=b"abc", octets=b"def"), 1))
    again = read(module, frame, 1)
    assert isinstance(again.records, memoryview)
    assert again.records.obj is frame
    assert type(again.octets) is bytes


def test_a_view_of_wider_items_counts_as_bytes(module: ModuleType) -> None:
    wide = memoryview(bytes(range(8))).cast("q")
    assert read(module, joined(write(module, Everything(records=wide), 1)), 1).records == bytes(range(8))


def test_an_empty_frame_is_refused(module: ModuleType) -> None:
    with pytest.raises(MalformedError, match="tiny: 1 bytes are announced but 0 are left"):
        read(module, b"", 0)


def test_a_reader_may_start_inside_a_frame(module: ModuleType) -> None:
    data = joined(write(module, FULL, 1))
    reader = module.Reader(b"front" + data, 5)
    assert tidy(reader.read(plan_for(module, plan_of(Everything, 1)))) == tidy(FULL)
    assert reader.position == len(data) + 5
