"""The output of `ottla pipeline status --watch` over time."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ottla.cli.pipelines.watch import Rows, table_of, watch

COLUMNS = ("NAME", "STATE", "ROWS-IN")


def test_outside_a_terminal_each_change_is_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    looks: Iterator[Rows] = iter(
        [
            [["a", "running", 1], ["b", "paused", None]],
            [["a", "running", 1], ["b", "paused", None]],
            [["a", "running", 5], ["b", "paused", None]],
        ]
    )

    def print_if_due() -> Rows:
        try:
            return next(looks)
        except StopIteration:
            raise KeyboardInterrupt from None

    watch(COLUMNS, print_if_due, lambda seconds: None)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        {"name": "a", "state": "running", "rows_in": 1},
        {"name": "b", "state": "paused", "rows_in": None},
        {"name": "a", "state": "running", "rows_in": 5},
    ]


def test_in_a_terminal_each_pipeline_has_a_row_with_dashes_for_missing_values() -> None:
    table = table_of(COLUMNS, [["a", "running", 1], ["b", "paused", None]])
    assert [column.header for column in table.columns] == list(COLUMNS)
    assert [list(column.cells) for column in table.columns] == [["a", "b"], ["running", "paused"], ["1", "-"]]
