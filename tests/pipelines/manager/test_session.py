"""The session that pipelines share, without a Spark."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger

import ottla.spark
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.session import LOGGERS, disable_error_logging, needed_by_workers, session_for
from ottla.pipelines.sources import SOURCES, Source

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
TEXT = """
settings: {spark: {SETTINGS}}
pipelines:
  p: {source: {type: rate}, sink: {type: console}}
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the settings of the started session, by Spark's names."""
    found: dict[str, str] = {}

    def session(name: str, master: str, **settings: str) -> SimpleNamespace:
        found.update({key.replace("__", "."): value for key, value in settings.items()})
        return SimpleNamespace(sparkContext=SimpleNamespace())

    monkeypatch.setattr(ottla.spark, "session", session)
    monkeypatch.setattr(
        "ottla.pipelines.manager.session.disable_error_logging", lambda: None
    )  # it lasts as long as the process
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))  # which a session of pipelines adds to
    return found


@pytest.mark.parametrize("name", LOGGERS)
def test_spark_s_python_side_writes_no_traces_of_what_it_raises(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    disable_error_logging()
    try:
        try:
            raise AnalysisException("no such column")
        except AnalysisException:
            PySparkLogger.getLogger(name).exception("no such column", errorClass="UNRESOLVED")
    finally:
        PySparkLogger.getLogger(name).disabled = False
    assert capsys.readouterr().err == ""


def test_checkpoints_are_written_without_a_process_per_file_access(asked: dict[str, str], tmp_path: Path) -> None:
    session_for(read_text(TEXT.replace("SETTINGS", "").encode(), "p.yaml", tmp_path, {}))
    assert asked[MANAGER].endswith(".FileSystemBasedCheckpointFileManager")


def test_the_spark_settings_of_the_file_are_used(asked: dict[str, str], tmp_path: Path) -> None:
    session_for(read_text(TEXT.replace("SETTINGS", f"{MANAGER}: mine").encode(), "p.yaml", tmp_path, {}))
    assert asked[MANAGER] == "mine"


DATABASE = """
settings: {bootstrap.servers: "localhost:9092"}
pipelines:
  p: {source: {type: database, url: "sqlite:///a.db", table: t, incrementing: id}, sink: {type: topic, topic: t}}
"""


def test_workers_are_forked_from_a_python_that_has_loaded_what_reads_a_database(tmp_path: Path) -> None:
    needed = list(needed_by_workers(read_text(DATABASE.encode(), "p.yaml", tmp_path, {})))
    assert "ottla.pipelines.sources.database.model" in needed
    assert list(needed_by_workers(read_text(TEXT.replace("SETTINGS", "").encode(), "p.yaml", tmp_path, {}))) == []


def test_connectors_of_other_packages_are_not_loaded_before_a_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Theirs(Source): ...

    monkeypatch.setitem(SOURCES, "theirs", Theirs)
    assert list(needed_by_workers(read_text(DATABASE.encode(), "p.yaml", tmp_path, {}))) == []
