"""The command for pipelines: `examples/changes`, in which every process is killed, and output to a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from examples.changes.__main__ import run

pytestmark = [pytest.mark.behaviour("D2", "D3", "D6"), pytest.mark.usefixtures("quick_drivers")]


@pytest.mark.long
def test_the_table_equals_the_database_after_each_kill(tmp_path: Path) -> None:
    assert run(tmp_path) == (0, 0)


def test_rows_are_shown_in_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1, "item": "one"}\n{"id": 2, "item": "two"}\n', "utf-8")
    source = {"type": "files", "format": "json", "path": "in", "schema": "id int, item string"}
    file = {"pipelines": {"shown": {"source": source, "sink": {"type": "console", "rows": 1}}}}
    (tmp_path / "p.yaml").write_text(json.dumps(file), "utf-8")
    command = [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", "p.yaml", "--once", "--master", "local[2]"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    assert "|1  |one |" in result.stdout
    assert "only showing top 1 row" in result.stdout
