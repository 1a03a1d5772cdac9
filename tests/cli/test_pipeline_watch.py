"""`ottla pipeline status --watch`: what is printed as time goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ottla.cli.pipelines.watch import Rows, table_of, watch

COLUMNS = ("NAME", "STATE", "ROWS-IN")


def test_elsewhere_than_in_a_terminal_each_change_is_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    looks: Iterator[Rows] = iter(
        [
            [["a", "running", 1], ["b", "paused", None]],
            [["a", "running", 1], ["b", "paused", None]],
            [["a", "running", 5], ["b", "paused", None]],
        ]
    )

    def look() -> Rows:
        try:
            return next(looks)
        except StopIteration:
            raise KeyboardInterrupt from None

    watch(COLUMNS, look, lambda seconds: None)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        {"name": "a", "state": "running", "rows_in": 1},
        {"name": "b", "state": "paused", "rows_in": None},
        {"name": "a", "state": "running", "rows_in": 5},
    ]


def test_in_a_terminal_there_is_a_row_for_each_and_a_dash_for_what_is_not_there() -> None:
    table = table_of(COLUMNS, [["a", "running", 1], ["b", "paused", None]])
    assert [column.header for column in table.columns] == list(COLUMNS)
    assert [list(column.cells) for column in table.columns] == [["a", "b"], ["running", "paused"], ["1", "-"]]
