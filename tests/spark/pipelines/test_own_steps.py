"""SQL and functions of one's own as steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

from ottla.errors import ConfigError
from ottla.pipelines.manager.reasons import reason_of
from tests.spark.pipelines.steps import after, rows, value

MODULE = """
from pyspark.sql import functions as F

def doubled(frame, by=2):
    return frame.withColumn("a", F.col("a") * by)

def nothing(frame):
    pass

number = 5

def sets(frame):
    raise KeyError("day")

def rows(frame):
    def run(batches):
        yield from (only(batch) for batch in batches)
    return frame.mapInPandas(run, frame.schema)

def only(batch):
    raise ArithmeticError("first line\\nsecond line") from ValueError("the cause")
"""


def test_sql_sees_the_rows_so_far_as_the_table_input(spark: SparkSession) -> None:
    frame = rows(spark, "1 as a", "2 as a")
    found = after(frame, {"sql": "select a + 1 as b from input where a > 1"}, {"sql": "select b * 2 as c from input"})
    assert value(found) == {"c": 6}
    assert "input" not in [table.name for table in spark.catalog.listTables()]


def test_metadata_selected_by_a_query_is_kept(spark: SparkSession) -> None:
    found = after(
        rows(spark, "1 as a"), {"sql": "select a, _key from input"}, {"type": "ExtractField$Key", "field": "id"}
    )
    assert found.columns == ["a", "_key"]


def test_a_query_over_a_column_that_is_not_there_is_refused_before_it_runs(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="amuont"):
        after(rows(spark, "1 as amount"), {"sql": "select amuont from input"})


def test_a_watermark_requires_an_existing_column(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="unknown field 'att'"):
        after(rows(spark, "1 as at"), {"sql": "select 1", "watermark": {"column": "att", "delay": "1 second"}})


def test_a_function_next_to_the_file_is_found_by_name_and_gets_its_arguments(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "own_steps_of_a_test.py").write_text(MODULE, encoding="utf-8")
    steps: list[dict[str, Any]] = [
        {"function": "own_steps_of_a_test:doubled"},
        {"function": "own_steps_of_a_test:doubled", "arguments": {"by": 5}},
    ]
    assert value(after(rows(spark, "3 as a"), *steps, folder=tmp_path)) == {"a": 30}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_steps_for_mistakes:dubled", "unknown function 'dubled'; did you mean 'doubled'? in module"),
        ("own_steps_for_mistakes:nothing", "function own_steps_for_mistakes:nothing returned NoneType"),
        (
            "own_steps_for_mistakes:sets",
            "function own_steps_for_mistakes:sets failed: KeyError: 'day' (",
        ),
        (
            "own_steps_for_mistakes:sets",
            "/own_steps_for_mistakes.py, line 13, in sets)",
        ),
        (
            "own_steps_for_mistakes:doubled",
            "function own_steps_for_mistakes:doubled failed: TypeError: doubled() got an unexpected keyword argument 'no'",
        ),
        ("own_steps_for_mistakes:number", "own_steps_for_mistakes:number is int, not a function"),
        ("no_such_module:f", "there is no module 'no_such_module' in"),
        ("broken_module:f", "module broken_module cannot be imported: ZeroDivisionError"),
    ],
)
def test_an_invalid_function_is_reported_with_the_reason(
    spark: SparkSession, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "own_steps_for_mistakes.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "broken_module.py").write_text("1 / 0", encoding="utf-8")
    arguments = {"no": 1} if name.endswith(":doubled") else {}
    with pytest.raises(ConfigError) as error:
        after(rows(spark, "3 as a"), {"function": name, "arguments": arguments}, folder=tmp_path)
    assert message in str(error.value)


def test_an_error_of_a_function_in_a_worker_is_reported_with_its_place(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "own_steps_that_fail.py").write_text(MODULE, encoding="utf-8")
    spark.sparkContext.addPyFile(str(tmp_path / "own_steps_that_fail.py"))
    frame = after(rows(spark, "3 as a"), {"function": "own_steps_that_fail:rows"}, folder=tmp_path)
    with pytest.raises(PythonException) as error:
        frame.collect()
    reason = reason_of(error.value)
    assert reason.startswith("ArithmeticError: first line second line (/")
    assert reason.endswith("/own_steps_that_fail.py, line 21, in only)")
