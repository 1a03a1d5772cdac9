"""The Python in which Spark looks for formats."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.spark.driver import lookup_python
from ottla.spark.driver.class_archive import OPTIONS
from ottla.spark.driver.lookup_python import choose_python, ensure_python, use_python

pytestmark = pytest.mark.heavy

ELSEWHERE = {"PATH": "/nowhere"}
PROGRAM = """
import ottla.spark
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
print("columns:", *spark.read.format("ottla").options(**options).load().columns)
spark.stop()
"""


@pytest.fixture(autouse=True)
def nothing_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_python, "is_running", lambda: False)
    monkeypatch.setenv(lookup_python.CHOSEN, "")


def chosen(**variables: str) -> str | None:
    environment = ELSEWHERE | variables
    choose_python(environment)
    return environment.get("PYSPARK_PYTHON")


def test_if_the_path_has_another_python_this_one_is_used() -> None:
    assert chosen() == sys.executable


def test_a_configured_python_is_kept() -> None:
    assert chosen(PYSPARK_PYTHON="mine") == "mine"
    assert chosen(PYSPARK_DRIVER_PYTHON="mine") is None
    assert chosen(PYSPARK_GATEWAY_PORT="7") is None
    assert chosen(PATH=str(Path(sys.executable).parent)) is None


@pytest.mark.parametrize(("named", "used"), [(None, "quicker"), (sys.executable, "quicker"), ("mine", "mine")])
def test_a_quicker_way_to_this_python_takes_its_place_and_no_others(
    monkeypatch: pytest.MonkeyPatch, named: str | None, used: str
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if named is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", named)
    use_python("quicker")
    assert os.environ["PYSPARK_PYTHON"] == used


def test_a_new_choice_of_python_replaces_that_of_an_earlier_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    use_python("of the process before")
    use_python("own")
    assert os.environ["PYSPARK_PYTHON"] == "own"


def test_a_task_that_is_too_late_reports_the_remedy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lookup_python, "is_running", lambda: True)
    assert chosen() is None
    assert "import ottla.spark first, activate the virtual environment, or set PYSPARK_PYTHON" in caplog.text


def test_a_plain_session_of_an_environment_that_is_not_activated_finds_the_format(tmp_path: Path) -> None:
    own = str(Path(sys.executable).parent)
    path = os.pathsep.join(folder for folder in os.environ["PATH"].split(os.pathsep) if folder != own)
    variables = {
        name: text
        for name, text in os.environ.items()
        if name == OPTIONS or not name.startswith(("PYSPARK", "VIRTUAL", "SPARK"))
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=variables | {"PATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert "columns: key value topic partition offset timestamp timestampType" in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_a_python_that_workers_unpack_must_be_in_the_drivers_folder_too(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = {name: "./environment/bin/python", "PATH": "/bin"}
    with pytest.raises(
        ConfigError, match=rf"{name} = ./environment/bin/python: there is no such program in {tmp_path}"
    ):
        ensure_python(named)
    (tmp_path / "environment" / "bin").mkdir(parents=True)
    (tmp_path / "environment" / "bin" / "python").symlink_to(sys.executable)
    ensure_python(named)


def test_a_python_of_the_path_is_there_and_so_is_none_that_is_named() -> None:
    ensure_python({"PYSPARK_PYTHON": "sh", "PATH": "/bin"})
    ensure_python({"PYSPARK_PYTHON": ""})
    ensure_python({})
