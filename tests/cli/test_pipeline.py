"""`ottla pipeline` from the outside."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NoReturn

import pytest

from ottla.cli.main import main
from ottla.cli.pipelines.desk import PipelineDesk
from ottla.free_ports import free_port
from ottla.pipelines.manager.state_directory import StateDirectory
from tests.pipelines.file.files import WHOLE


def test_a_file_and_a_folder_without_mistakes_are_named_with_their_pipelines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.yaml").write_text(WHOLE, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("a: b: c", encoding="utf-8")
    assert main(["pipeline", "validate", str(tmp_path / "one.yaml")]) == 0
    assert main(["pipeline", "validate", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("2 pipelines, no errors: orders-in, revenue") == 2


def test_mistakes_are_lines_of_standard_error_with_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(WHOLE.replace("MaskField", "MakeField").replace("valueSchema", "valueScheme"), encoding="utf-8")
    assert main(["pipeline", "validate", str(file)]) == 1
    stdout = capsys.readouterr()
    assert stdout.err.splitlines() == [
        f"{file}:8:9: unknown type of transform 'MakeField'; did you mean 'MaskField'?",
        f"{file}:12:61: unknown key 'valueScheme'; did you mean 'valueSchema'?",
    ]
    assert stdout.out == ""


def test_two_files_of_a_folder_may_not_name_a_pipeline_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.yaml", "b.yml"):
        (tmp_path / name).write_text(WHOLE, encoding="utf-8")
    assert main(["pipeline", "validate", str(tmp_path)]) == 1
    assert f"b.yml:4:3: pipeline 'orders-in' is also in {tmp_path / 'a.yaml'}" in capsys.readouterr().err


def test_a_missing_file_and_an_empty_folder_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "validate", str(tmp_path / "no.yaml")]) == 1
    assert main(["pipeline", "validate", str(tmp_path)]) == 1
    stderr = capsys.readouterr().err
    assert "no such file or folder" in stderr
    assert "no pipeline files in this folder" in stderr


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["required"] == ["pipelines"]


def test_pipelines_are_listed_with_their_sources_and_sinks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.yaml").write_text(WHOLE, encoding="utf-8")
    assert main(["pipeline", "list", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["source"], one["sink"]) for one in found] == [
        ("orders-in", "csv files in", "topic orders"),
        ("revenue", "topic orders", "Delta table lake/revenue"),
    ]


def test_the_status_is_the_last_reported_one_or_killed_if_the_process_has_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.yaml").write_text(WHOLE, encoding="utf-8")
    first, second = (StateDirectory(tmp_path / "state", name) for name in ("orders-in", "revenue"))
    first.lock()
    first.write_status({"state": "running", "batch": 3, "rows_in": 10})
    first.unlock()
    assert main(["pipeline", "status", str(tmp_path), "--json"]) == 0
    second.lock()
    first.lock()
    assert main(["pipeline", "status", str(tmp_path), "--json"]) == 0
    for home in (first, second):
        home.unlock()
    texts = capsys.readouterr().out.split("]\n[")
    states = [[one["state"] for one in json.loads(f"[{text.strip().strip('[]')}]")] for text in texts]
    assert states == [["killed", "new"], ["running", "new"]]


def test_the_status_of_pipelines_needs_neither_their_secrets_nor_their_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = "{type: topic, topic: '${env:OTTLA_NOT_SET}', valueFormat: avro, valueSchema: gone.avsc}"
    file = tmp_path / "p.yaml"
    file.write_text(f"pipelines:\n p:\n  source: {source}\n  sink: {{type: console}}\n", encoding="utf-8")
    checkpoint = StateDirectory(tmp_path / "state", "p").checkpoint
    for name, text in (("commits", "v1\n{}"), ("offsets", 'v1\n{}\n{"orders": {"0": 23}}')):
        (checkpoint / name).mkdir(parents=True)
        (checkpoint / name / "0").write_text(text, encoding="utf-8")
    desk = PipelineDesk(file)
    assert [one["name"] for one in desk.status()] == ["p"]
    assert desk.pause("p").startswith("p is paused; it does not run now")
    assert main(["pipeline", "offsets", "show", "p", "--file", str(file), "--json"]) == 0
    assert "23" in capsys.readouterr().out
    assert main(["pipeline", "restart", "p", "--file", str(file)]) == 1
    assert "pipeline 'p' does not run: start it with" in capsys.readouterr().err
    for command in (["list"], ["status"]):
        assert main(["pipeline", *command, str(file)]) == 0
    for verb in ("pause", "stop", "resume"):
        assert main(["pipeline", verb, "p", "--file", str(file)]) == 0
    stdout = capsys.readouterr()
    assert "topic ${env:OTTLA_NOT_SET}" in stdout.out
    assert stdout.err == ""
    assert main(["pipeline", "validate", str(file)]) == 1
    assert main(["pipeline", "stop", "q", "--file", str(file)]) == 2


def test_a_pipeline_that_is_not_in_the_file_cannot_be_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.yaml").write_text(WHOLE, encoding="utf-8")
    assert main(["pipeline", "run", str(tmp_path), "--only", "revnue"]) == 2
    assert "unknown pipeline 'revnue'; did you mean 'revenue'? There are orders-in, revenue" in capsys.readouterr().err
    assert main(["pipeline", "run", str(tmp_path), "--only", "x"]) == 2
    assert "unknown pipeline 'x'; there are orders-in, revenue" in capsys.readouterr().err


def test_a_pipeline_that_cannot_run_is_rejected_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def session_for(*_: object) -> NoReturn:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("ottla.pipelines.manager.session.session_for", session_for)
    monkeypatch.setattr("ottla.pipelines.manager.topics.ABSENT_MS", 100)
    monkeypatch.setattr("ottla.pipelines.manager.reachability.LISTENING_SECONDS", 0.0)
    (tmp_path / "one.yaml").write_text(WHOLE.replace("9092", str(free_port())), encoding="utf-8")
    assert main(["pipeline", "run", str(tmp_path)]) == 1
    assert "one.yaml:10:5: no Kafka broker answered" in capsys.readouterr().err
    first, second = (StateDirectory(tmp_path / "state", name) for name in ("orders-in", "revenue"))
    second.lock()
    assert main(["pipeline", "run", str(tmp_path)]) == 1
    stderr = capsys.readouterr().err
    assert f"pipeline 'revenue' is being run by process {os.getpid()}; stop that one first" in stderr
    assert not first.is_locked()
    second.unlock()
