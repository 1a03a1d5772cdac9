"""A PostgreSQL server per test process, with databases for each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from rivals.postgresql import Server, postgresql


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    """A PostgreSQL server. Tests fail with its error if it is unavailable; they are not skipped silently."""
    try:
        with postgresql() as server:
            yield server
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)


class Sql:
    """A database for one test."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = f"t{uuid.uuid4().hex[:12]}"
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"create database {self.name}")
        self.url = server.url.removesuffix("postgres") + self.name
        self.shown = f"postgresql://127.0.0.1:{server.port}/{self.name}"

    def connect(self) -> Any:
        """Return a connection that is in a transaction from its first statement."""
        return psycopg.connect(self.url)

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for one in statements:
                connection.execute(one)

    def rows(self, query: str) -> list[Any]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def sql(postgresql_server: Server) -> Sql:
    return Sql(postgresql_server)
