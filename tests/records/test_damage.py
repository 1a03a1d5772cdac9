"""Hostile bytes: a valid CRC does not prove that the content is valid."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptRecordError
from ottla.records.batch import parse_header, seal
from ottla.records.builder import BatchBuilder
from ottla.records.compression import Codec, compress
from ottla.records.headers import decode_headers, encode_headers
from tests.records.forms import FORMS, rows_of


def batch_of(count: int = 5) -> bytes:
    builder = BatchBuilder()
    for i in range(count):
        assert builder.append(1000 + i, b"key" if i % 2 else None, b"value %d" % i, [("h", b"x"), ("", None)][: i % 3])
    return builder.build(4, 0, 0)


GOOD = batch_of()


def outcome(form: Any, data: bytes, **options: Any) -> Any:
    """Return the results of decoding `data`, or the text of the error."""
    try:
        columns = form.decode(data, limit_bytes=1 << 20, **options)
    except CorruptRecordError as error:
        return str(error)
    assert columns.count * 7 <= 1 << 20
    types = [(columns.timestamp_type(row), columns.leader_epoch(row)) for row in range(columns.count)]
    return rows_of(columns), columns.next_offset, types


def same_outcome(data: bytes, **options: Any) -> Any:
    """Return the outcome, after asserting that all implementations have the same one."""
    compiled, plain, interpreted = (outcome(form, data, **options) for form in FORMS.values())
    assert compiled == plain == interpreted
    return compiled


def mutated(data: bytes, changes: random.Random) -> bytes:
    """`data` with some bytes changed, removed or duplicated."""
    out = bytearray(data)
    for _ in range(changes.randint(1, 4)):
        at = changes.randrange(len(out))
        match changes.randrange(4):
            case 0:
                out[at] = changes.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, changes.randrange(256)))
            case 1:
                out[at] ^= 1 << changes.randrange(8)
            case 2 if len(out) > 9:
                del out[at : at + changes.randrange(4)]
            case _:
                out[at:at] = changes.choice((b"\x80", b"\xff" * 9, out[at : at + 8]))
    return bytes(out)


@pytest.mark.parametrize("seed", range(20))
def test_all_forms_make_the_same_of_damaged_records_with_a_true_crc(seed: int) -> None:
    changes = random.Random(seed)
    header = parse_header(GOOD)
    refused = 0
    for _ in range(100):
        data = seal(header, mutated(GOOD[61:], changes))
        refused += isinstance(same_outcome(data, with_headers=changes.random() < 0.8), str)
    assert refused > 20


@pytest.mark.parametrize("seed", range(5))
def test_all_forms_make_the_same_of_damaged_headers(seed: int) -> None:
    changes = random.Random(seed)
    for _ in range(100):
        same_outcome(mutated(GOOD + GOOD, changes), check_crcs=False)
        same_outcome(mutated(GOOD + GOOD, changes), aborted=[(4, 0)], from_offset=changes.choice((0, 3)))


@pytest.mark.parametrize("codec", list(Codec)[1:], ids=lambda codec: codec.name)
def test_both_forms_make_the_same_of_damaged_compressed_records(codec: Codec) -> None:
    changes = random.Random(int(codec))
    header = parse_header(GOOD)._replace(attributes=int(codec))
    for _ in range(100):
        same_outcome(seal(header, compress(codec, mutated(GOOD[61:], changes))))
        same_outcome(seal(header, mutated(compress(codec, GOOD[61:]), changes)))


@given(records=st.binary(max_size=60), count=st.integers(-1, 9), delta=st.integers(-1, 9))
def test_both_forms_make_the_same_of_junk(records: bytes, count: int, delta: int) -> None:
    same_outcome(seal(parse_header(GOOD)._replace(count=count, last_offset_delta=delta), records))


@pytest.mark.parametrize("end", range(61, len(GOOD)))
def test_records_cut_off_anywhere_are_refused(end: int) -> None:
    assert isinstance(same_outcome(seal(parse_header(GOOD), GOOD[61:end])), str)


def record(
    *, size: bytes = b"\x10", offset: bytes = b"\x00", key: bytes = b"\x01", value: bytes = b"\x04vv\x00"
) -> bytes:
    return size + b"\x00\x00" + offset + key + value


NO_END = b"\xff" * 10
HUGE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # 2 ** 63 - 1
LEAST = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # -2 ** 63


@pytest.mark.parametrize(
    "records",
    [
        record(size=b"\x00"),
        record(size=b"\x01"),
        record(size=HUGE),
        record(size=LEAST),
        record(size=NO_END),
        record(size=b"\x12"),
        record(size=b"\x0e"),
        record(offset=b"\x02"),
        record(offset=b"\x01"),
        record(key=b"\x03"),
        record(key=b"\x08"),
        record(size=b"\x22", key=HUGE),
        record(size=b"\x22", key=LEAST),
        record(value=b"\x06vv\x00"),
        record(value=b"\x08vv\x00"),
        record(value=b"\x03vv\x00"),
        record(value=b"\x04vv\x02"),
        record(value=b"\x04vv\x01"),
        record(value=b"\x02v\x00\x00"),
        record() + b"\x00",
        record() + record(),
    ],
    ids=bytes.hex,
)
def test_lengths_that_do_not_fit_are_refused(records: bytes) -> None:
    header = parse_header(batch_of(1))
    assert same_outcome(seal(header, record()))[0] == [(0, 1000, None, b"vv", [])]
    assert isinstance(same_outcome(seal(header, records)), str)


@pytest.mark.parametrize("count", [2, 1000, 2**31 - 1])
def test_a_false_record_count_allocates_no_memory(count: int) -> None:
    header = parse_header(GOOD)._replace(count=count, last_offset_delta=2**31 - 1)
    assert "records" in same_outcome(seal(header, record()))
    empty = compress(Codec.ZSTD, b"")
    assert f"says it has {count} records in 0 bytes" in same_outcome(seal(header._replace(attributes=4), empty))


@pytest.mark.parametrize("base_offset", [-1, -(2**63), 2**63 - 1])
def test_offsets_beyond_64_bits_are_refused(base_offset: int) -> None:
    data = seal(parse_header(GOOD)._replace(base_offset=base_offset), GOOD[61:])
    assert "base offset" in same_outcome(data) or base_offset == 2**63 - 1


def test_an_error_has_position_and_cause() -> None:
    records = GOOD[61:-2] + b"\x7f\x00"
    text = same_outcome(seal(parse_header(GOOD)._replace(base_offset=70), records))
    assert text.startswith("a record of the batch at offset 70, which says it has 5 records")


@given(headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=4))
def test_headers_are_decoded_as_they_were_encoded(headers: list[tuple[str, bytes | None]]) -> None:
    assert decode_headers(encode_headers(headers)) == headers
    assert decode_headers(b"") == []


@given(data=st.binary(max_size=30))
def test_junk_for_headers_is_an_error_or_headers(data: bytes) -> None:
    try:
        decode_headers(data)
    except CorruptRecordError:
        pass
