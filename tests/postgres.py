"""One PostgreSQL for the tests of a process, and schemas of their own for each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from rivals.postgresql import Server, postgresql


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    """Where there is none, tests fail with the sentence that says so; they are not skipped in silence."""
    try:
        with postgresql() as server:
            yield server
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)


class Sql:
    """A database of a test's own."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = f"t{uuid.uuid4().hex[:12]}"
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"create database {self.name}")
        self.url = server.url.removesuffix("postgres") + self.name
        self.shown = f"postgresql://127.0.0.1:{server.port}/{self.name}"

    def connect(self) -> Any:
        """A connection, in a transaction from its first statement on."""
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
