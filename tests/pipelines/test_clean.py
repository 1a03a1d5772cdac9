"""`ottla pipeline clean` lists the objects that pipelines created on servers, and deletes them on request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.pipelines.file.reading import read_pipelines
from ottla.pipelines.manager.build import context_of
from ottla.pipelines.manager.state_directory import StateDirectory
from ottla.pipelines.sources.postgres_cdc import PostgresCdcSource
from tests.pipelines.sources.asked import Asked
from tests.postgres import Sql


def begun(sql: Sql, folder: Path) -> Path:
    """A pipeline that has read its first changes."""
    sql.run("create table t (id int primary key)", "insert into t values (1)")
    source = {"type": "postgres-cdc", "url": sql.url, "table": "t", "slot.name": f"s_{sql.name}"}
    file = folder / "p.yaml"
    file.write_text(json.dumps({"pipelines": {"changes": {"source": source, "sink": {"type": "console"}}}}), "utf-8")
    (read,) = read_pipelines(file)
    assert isinstance(read.model.source, PostgresCdcSource)
    asked = Asked(context_of(read).home)
    assert len(asked.all(asked.reader(read.model.source))) == 1
    asked.stop()
    return file


Output = pytest.CaptureFixture[str]


def test_slots_and_publications_are_reported_and_deleted(sql: Sql, tmp_path: Path, capsys: Output) -> None:
    file = str(begun(sql, tmp_path))
    assert main(["pipeline", "clean", file]) == 0
    stdout = capsys.readouterr().out.splitlines()
    assert stdout[0].startswith(f"changes: slot s_{sql.name} of {sql.shown}, for which the server keeps ")
    assert stdout[1:] == [f"changes: publication s_{sql.name} of {sql.shown}", "add --drop to remove them"]
    assert main(["pipeline", "clean", file, "--drop"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "all of them were removed"
    assert main(["pipeline", "clean", file]) == 0
    assert capsys.readouterr().out == "there are no leftovers\n"


def test_a_pipeline_that_is_run_keeps_what_it_has(sql: Sql, tmp_path: Path, capsys: Output) -> None:
    file = str(begun(sql, tmp_path))
    home = StateDirectory(tmp_path / "state", "changes")
    home.lock()
    assert main(["pipeline", "clean", file, "--drop"]) == 1
    home.unlock()
    assert "pipeline 'changes' is being run; stop it first" in capsys.readouterr().err
    assert main(["pipeline", "clean", file, "--drop"]) == 0


def test_an_unreachable_server_is_an_error(sql: Sql, tmp_path: Path, capsys: Output) -> None:
    file = begun(sql, tmp_path)
    assert main(["pipeline", "clean", str(file), "--drop"]) == 0
    file.write_text(file.read_text("utf-8").replace(f":{sql.server.port}/", ":1/"), "utf-8")
    assert main(["pipeline", "clean", str(file)]) == 1
    assert capsys.readouterr().err.startswith("ottla: database postgresql://127.0.0.1:1/")
