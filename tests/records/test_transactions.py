from __future__ import annotations

from struct import pack
from types import ModuleType

import pytest

from ottla.errors import CorruptRecordError
from ottla.records.aborted_transactions import AbortedTransactions
from ottla.records.batch import CONTROL, TRANSACTIONAL, new_header, parse_header, seal
from ottla.records.builder import BatchBuilder
from ottla.records.control import ControlType, control_type
from tests.records.forms import FORMS

forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
ABORT, COMMIT = b"\x00\x00\x00\x00", b"\x00\x00\x00\x01"


def data(offset: int, producer_id: int, count: int = 1, transactional: bool = True) -> bytes:
    builder = BatchBuilder()
    for i in range(count):
        assert builder.append(0, None, b"%d" % (offset + i))
    batch = builder.build(producer_id, 0, 0, transactional)
    return seal(parse_header(batch)._replace(base_offset=offset), batch[61:])


def marker(offset: int, producer_id: int, key: bytes | None) -> bytes:
    builder = BatchBuilder()
    assert builder.append(0, key, pack(">hi", 0, 1))
    records = builder.build()[61:]
    header = new_header(
        count=1, base_timestamp=0, max_timestamp=0, attributes=CONTROL | TRANSACTIONAL, producer_id=producer_id
    )
    return seal(header._replace(base_offset=offset), records)


def read(form: ModuleType, log: bytes, aborted: list[tuple[int, int]], from_offset: int = 0) -> list[int]:
    columns = form.decode(log, aborted=aborted, from_offset=from_offset)
    return [int(columns.value(row)) for row in range(columns.count)]


@forms
def test_batches_of_an_aborted_transaction_are_left_out_up_to_its_marker(form: ModuleType) -> None:
    log = data(0, 7, 2) + data(2, 7) + marker(3, 7, ABORT) + data(4, 7) + marker(5, 7, COMMIT)
    assert read(form, log, []) == [0, 1, 2, 4]
    assert read(form, log, [(7, 0)]) == [4]


@forms
def test_transactions_of_several_producers_are_distinguished(form: ModuleType) -> None:
    log = data(0, 7) + data(1, 8) + data(2, 7) + marker(3, 8, COMMIT) + marker(4, 7, ABORT)
    assert read(form, log, [(7, 0)]) == [1]


@forms
def test_records_before_the_aborted_transaction_stay(form: ModuleType) -> None:
    log = data(0, 7) + marker(1, 7, COMMIT) + data(2, 7) + marker(3, 7, ABORT)
    assert read(form, log, [(7, 2)]) == [0]


@forms
def test_several_aborted_transactions_of_one_producer_end_one_by_one(form: ModuleType) -> None:
    log = data(0, 7) + marker(1, 7, ABORT) + data(2, 7) + marker(3, 7, COMMIT) + data(4, 7) + marker(5, 7, ABORT)
    assert read(form, log, [(7, 4), (7, 0)]) == [2]


@forms
def test_a_fetch_may_begin_in_the_middle_of_an_aborted_transaction(form: ModuleType) -> None:
    log = data(4, 7) + marker(5, 7, ABORT) + data(6, 7)
    assert read(form, log, [(7, 0)], from_offset=4) == [6]


@forms
def test_records_that_are_not_in_a_transaction_are_never_left_out(form: ModuleType) -> None:
    assert read(form, data(0, 7, transactional=False) + data(1, 7), [(7, 0)]) == [0]


@forms
def test_reading_continues_after_aborted_records(form: ModuleType) -> None:
    columns = form.decode(data(0, 7, 5), aborted=[(7, 0)])
    assert (columns.count, columns.next_offset) == (0, 5)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (ABORT, ControlType.ABORT),
        (COMMIT, ControlType.COMMIT),
        (b"\x00\x07" + COMMIT[2:], ControlType.COMMIT),
        (COMMIT + b"from a later version", ControlType.COMMIT),
        (b"\x00\x00\x00\x02", None),
        (b"\x00\x00\xff\xff", None),
    ],
)
def test_a_control_record_gives_the_outcome_of_the_transaction(key: bytes, kind: ControlType | None) -> None:
    assert control_type(marker(0, 7, key)[61:]) is kind


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00"])
def test_a_control_record_without_a_type_is_an_error(key: bytes | None) -> None:
    batch = marker(0, 7, key)
    with pytest.raises(CorruptRecordError, match="control record"):
        control_type(batch[61:])
    with pytest.raises(CorruptRecordError):
        AbortedTransactions([]).covers(parse_header(batch), batch, 0)


def test_control_records_cut_off_anywhere_are_an_error() -> None:
    records = marker(0, 7, COMMIT)[61:]
    for end in range(9):
        with pytest.raises(CorruptRecordError):
            control_type(records[:end])
