from __future__ import annotations

from array import array
from typing import Any

import pytest

import ottla.records.binary_column as compiled
from tests.plain import plain

FORMS = [compiled, plain("ottla.records.binary_column")]
forms = pytest.mark.parametrize("form", FORMS, ids=["compiled", "plain"])


def offsets(*numbers: int) -> memoryview:
    return memoryview(array("i", numbers))


@forms
def test_a_column_gives_bytes_and_none(form: Any) -> None:
    column = form.BinaryColumn(3, offsets(0, 2, 2, 2), b"ab", b"\x03", 1)
    assert [column.get(row) for row in range(3)] == [b"ab", b"", None]
    assert [column.size(row) for row in range(3)] == [2, 0, -1]


@forms
def test_a_column_of_nulls_has_only_none(form: Any) -> None:
    column = form.BinaryColumn.of_nulls(9)
    assert [column.get(row) for row in range(9)] == [None] * 9
    assert form.BinaryColumn.of_nulls(0).count == 0


@forms
def test_rows_before_the_first_and_after_the_last_are_an_error(form: Any) -> None:
    column = form.BinaryColumn.of_nulls(2)
    for row in (-1, 2):
        with pytest.raises(IndexError, match=f"row {row} of 2"):
            column.get(row)
        with pytest.raises(IndexError, match=f"row {row} of 2"):
            column.size(row)


@forms
@pytest.mark.parametrize(
    "parts",
    [
        (1, offsets(0), b""),
        (-1, offsets(0), b""),
        (0, offsets(), b""),
        (1, offsets(0, 3), b"ab"),
        (1, offsets(-1, 1), b"ab"),
        (2, offsets(0, 2, 1), b"ab"),
        (2, offsets(0, 99, 1), b"ab"),
        (9, offsets(*[0] * 10), b"", b"\xff", 1),
    ],
)
def test_values_outside_of_the_data_are_refused(form: Any, parts: Any) -> None:
    with pytest.raises(ValueError, match="are not a column of"):
        form.BinaryColumn(*parts)


@forms
@pytest.mark.parametrize("items", [[], [b""], [None], [b"a", b"", None, b"bc"], [None] * 9 + [b"x"] * 9])
def test_a_column_of_items_has_them_in_their_order(form: Any, items: list[bytes | None]) -> None:
    column = form.column_of(items)
    assert [column.get(row) for row in range(column.count)] == items
    assert column.null_count == items.count(None)
