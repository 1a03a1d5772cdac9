"""Mistakes about databases are reported before Spark is started."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.databases import ensure_databases
from ottla.pipelines.place import PipelineFileError

FILE = """\
pipelines:
  out:
    source: {type: database, url: "sqlite:///there.db", table: t, incrementing: id}
    sink: {type: database, url: "sqlite:///gone.db", table: t}
  changes:
    source: {type: postgres-cdc, url: "postgresql://me:${file:password}@127.0.0.1:1/shop", table: t}
    inputs: {more: {type: database, url: "mysql://me@127.0.0.1:1/shop", table: t, incrementing: id}}
    sink: {type: console}
"""


def test_databases_that_cannot_be_opened_are_reported_all_at_once_with_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("s3cret")
    with closing(sqlite3.connect(tmp_path / "there.db")) as connection:
        connection.execute("create table t (id integer primary key)")
    monkeypatch.setitem(sys.modules, "pymysql", None)  # as where it is not installed
    reads = read_text(FILE.encode(), "p.yaml", tmp_path, {})
    with pytest.raises(PipelineFileError) as error:
        ensure_databases(reads)
    gone, refused, missing = str(error.value).splitlines()
    assert gone.startswith("p.yaml:4:28: database sqlite:///gone.db: file")
    assert refused.startswith("p.yaml:6:34: database postgresql://127.0.0.1:1/shop: ")
    assert "s3cret" not in refused
    assert missing == "p.yaml:7:37: this needs pymysql, which is not installed; pip install 'ottla[mysql]'"
