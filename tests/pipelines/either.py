"""A database of either kind, used alike in tests."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.mysql import MySql
from tests.postgres import Sql


class Lite:
    """A database of SQLite with the methods of `Sql`."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "shop.db"
        self.file.touch()
        self.url = "sqlite:///shop.db"

    def run(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.file)) as connection, connection:
            for one in statements:
                connection.execute(one)

    def rows(self, query: str) -> list[Any]:
        with closing(sqlite3.connect(self.file)) as connection:
            return connection.execute(query).fetchall()


Either = Lite | Sql | MySql


def either_of(kind: str, request: pytest.FixtureRequest, folder: Path) -> Either:
    """A database of this kind, for a fixture."""
    found: Either = Lite(folder) if kind == "sqlite" else request.getfixturevalue({"postgresql": "sql"}.get(kind, kind))
    return found
