"""The limit of the size of a record, compiled and uncompiled."""

from __future__ import annotations

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import CorruptRecordError, KafkaError
from ottla.storage.validation import record_sizes as compiled
from tests.plain import is_compiled, plain
from tests.storage.batches import record

FORMS: dict[str, ModuleType] = {"compiled": compiled, "plain": plain("ottla.storage.validation.record_sizes")}
LIMIT = 300


def outcome(form: ModuleType, data: bytes) -> str:
    try:
        form.check_record_sizes(data, LIMIT)
    except (CorruptRecordError, KafkaError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_the_module_is_compiled() -> None:
    assert is_compiled(compiled)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_first_record_above_the_limit_is_named(form: ModuleType) -> None:
    small, large = record(0, 0, b"a"), record(1, 0, bytes(300))

    assert outcome(form, small * 3) == ""
    assert outcome(form, small + large).startswith("KafkaError")
    assert "record 1 has 307 bytes without compression, max.decompressed.message.bytes is 300" in outcome(
        form, small + large
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("data", [b"\x80", b"\x01", b"\xff\xff", record(0, 0, b"abc")[:-1]])
def test_records_without_a_valid_size_are_damaged(form: ModuleType, data: bytes) -> None:
    assert outcome(form, data).startswith("CorruptRecordError: record 0 ")


@given(st.lists(st.binary(max_size=600)), st.integers(0, 4000), st.binary(max_size=3))
def test_both_forms_agree_on_any_bytes(values: list[bytes], position: int, change: bytes) -> None:
    data = bytearray(b"".join(record(number, 0, value) for number, value in enumerate(values)))
    position %= len(data) + 1
    data[position : position + len(change)] = change

    assert outcome(compiled, bytes(data)) == outcome(FORMS["plain"], bytes(data))
