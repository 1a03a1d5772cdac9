"""Text of several lines, in each of YAML's ways."""

from __future__ import annotations

import pytest

from ottla.pipelines.transforms import SqlTransform
from tests.pipelines.file.files import read

START = "pipelines:\n p:\n  source: {type: rate}\n  sink: {type: console}\n  transforms:\n   - sql: "
LINES = "\n       select a,\n       b\n       from input\n"


@pytest.mark.parametrize(
    ("way", "sql"),
    [("", "select a, b from input"), (">-", "select a, b from input"), ("|-", "select a,\nb\nfrom input")],
)
def test_a_query_of_several_lines_is_read_as_written(way: str, sql: str) -> None:
    (step,) = read(START + way + LINES)[0].model.transforms
    assert isinstance(step, SqlTransform)
    assert step.sql == sql
