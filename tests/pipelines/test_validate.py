"""`ottla pipeline validate` asks the server of a captured table, before anything is made there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ottla.cli.main import main
from tests.postgres import Sql

Output = pytest.CaptureFixture[str]


def written(sql: Sql, folder: Path) -> Path:
    source = {"type": "postgres-cdc", "url": sql.url, "table": "t"}
    file = folder / "p.yaml"
    file.write_text(json.dumps({"pipelines": {"changes": {"source": source, "sink": {"type": "console"}}}}), "utf-8")
    return file


def test_a_table_without_replica_identity_is_a_mistake(sql: Sql, tmp_path: Path, capsys: Output) -> None:
    sql.run("create table t (id int)", "insert into t values (1)")
    file = written(sql, tmp_path)
    assert main(["pipeline", "validate", str(file)]) == 1
    assert "p.yaml:1:" in (said := capsys.readouterr().err)
    assert "table t has no replica identity, so PostgreSQL rejects its updates and deletions" in said
    assert main(["pipeline", "validate", str(file), "--json"]) == 1
    (mistake,) = json.loads(capsys.readouterr().out)
    assert mistake["mistake"].startswith("table t has no replica identity")
    sql.run("update t set id = 2", "alter table t add primary key (id)")
    assert main(["pipeline", "validate", str(file)]) == 0
    assert sql.rows("select * from pg_publication") == []


def test_a_server_that_cannot_be_reached_is_not_reported_as_a_mistake_in_the_file(
    sql: Sql, tmp_path: Path, capsys: Output
) -> None:
    file = written(sql, tmp_path)
    sql.server.kill()
    try:
        assert main(["pipeline", "validate", str(file)]) == 0
    finally:
        sql.server.start()
    said = capsys.readouterr()
    assert f"not checked: database {sql.shown}" in said.err
    assert "no errors: changes" in said.out
