"""The session that pipelines share, without a Spark."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger

from ottla.pipelines.manager.session import LOGGERS, hush


@pytest.mark.parametrize("name", LOGGERS)
def test_spark_s_python_side_writes_no_traces_of_what_it_raises(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    hush()
    try:
        try:
            raise AnalysisException("no such column")
        except AnalysisException:
            PySparkLogger.getLogger(name).exception("no such column", errorClass="UNRESOLVED")
    finally:
        PySparkLogger.getLogger(name).disabled = False
    assert capsys.readouterr().err == ""
