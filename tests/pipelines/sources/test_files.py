"""Paths of file sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.cli.main import main

REFUSED = "must be a folder, not a file; use its folder, or a pattern there such as `in/*.csv`"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with a file next to the pipeline file."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1\n", encoding="utf-8")
    return tmp_path


def pipeline(folder: Path, source: str, more: str = "") -> Path:
    file = folder / "p.yaml"
    text = f"pipelines:\n p:\n  source: {{{source}}}\n  sink: {{type: console}}\n{more}"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_file_is_refused_with_its_place_before_anything_runs(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = pipeline(folder, "type: files, format: lines, path: in/a.csv")
    assert main(["pipeline", command, str(file)]) == 1
    assert capsys.readouterr().err.splitlines() == [f"{file}:3:40: path = 'in/a.csv': {REFUSED}"]


def test_a_file_is_refused_as_another_input_and_values_from_the_environment_stay_hidden(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE", str(folder / "in" / "a.csv"))
    file = pipeline(folder, "type: rate", "  inputs:\n   more: {type: files, format: lines, path: '${env:WHERE}'}\n")
    assert main(["pipeline", "validate", str(file)]) == 1
    assert capsys.readouterr().err.splitlines() == [f"{file}:6:39: path = '${{env:WHERE}}': {REFUSED}"]


@pytest.mark.parametrize("path", ["in", "in/", "in/*.csv", "in/a.cs[v]", "not-yet", "hdfs://there/in/a.csv", "a" * 300])
def test_folders_patterns_and_what_is_not_there_yet_are_no_mistakes(path: str, folder: Path) -> None:
    file = pipeline(folder, f"type: files, format: lines, path: '{path}'")
    assert main(["pipeline", "validate", str(file)]) == 0
