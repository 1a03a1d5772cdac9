"""The Python that Spark starts its workers with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from ottla.spark.workers.worker_python import SCRIPT, worker_python

ARCHIVE = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"


def list_paths(program: str, *paths: str) -> list[str]:
    """Return the import paths of `program`, started with `paths` first."""
    request_process = [program, "-c", "import os, sys; print(os.environ['PYTHONPATH']); print(sys.executable)"]
    environment = os.environ | {"PYTHONPATH": ":".join(paths)}
    answer = subprocess.run(
        request_process, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert answer[1] == sys.executable
    return answer[0].split(":")


def test_the_archive_is_left_out_and_nothing_else() -> None:
    program = worker_python()
    assert list_paths(program, str(ARCHIVE), "/with a space", str(ARCHIVE.resolve()), "/other") == [
        "/with a space",
        "/other",
    ]
    assert list_paths(program, "/first", str(ARCHIVE)) == ["/first"]
    assert list_paths(program, "/first/pyspark.zip") == ["/first/pyspark.zip"]


def test_every_daemon_of_spark_is_ours_and_workers_are_forked_and_nothing_else_is_changed(tmp_path: Path) -> None:
    file = tmp_path / "script"
    file.write_text(SCRIPT.format(archives="none", python="echo", worker="echo fork"))

    def started(*request_process: str) -> str:
        return subprocess.run(
            ["sh", str(file), *request_process], capture_output=True, text=True, check=True
        ).stdout.strip()

    assert (
        started("-m", "pyspark.daemon", "pyspark.worker") == "fork -m ottla.spark.workers.worker_daemon pyspark.worker"
    )
    assert started("-m", "pyspark.worker") == "fork -m pyspark.worker"
    assert started("-m", "ottla.spark.workers.worker_daemon") == "fork -m ottla.spark.workers.worker_daemon"
    assert started("-m", "other") == "-m other"
    assert started("-c", "a  b") == "-c a  b"


def test_the_archive_of_another_spark_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert worker_python.__wrapped__() == sys.executable


def test_workers_import_what_is_installed(spark: SparkSession) -> None:
    def where(rows: Iterable[int]) -> Iterable[str]:
        import pyspark

        yield pyspark.__file__

    (file,) = spark.sparkContext.parallelize([0], 1).mapPartitions(where).collect()
    assert Path(file).resolve() == Path(pyspark.__file__).resolve()
