"""A MariaDB server per test process, or the MySQL server of OTTLA_MYSQLD, with databases for each test."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from rivals.mariadb import Server, mariadb, program
from rivals.mysql import MYSQLD
from rivals.mysql import mysql as real_mysql


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[Server]:
    """A MySQL server. Tests are skipped with its error if it is unavailable."""
    pytest.importorskip("pymysql", reason="PyMySQL is not installed; make install")
    if MYSQLD in os.environ:
        with real_mysql() as server:
            yield server
        return
    try:
        program("mariadb-install-db")
    except RuntimeError as error:
        pytest.skip(str(error))
    with mariadb() as server:
        yield server


class MySql:
    """A database for one test."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = f"t{uuid.uuid4().hex[:12]}"
        self.url = server.url.removesuffix("mysql") + self.name
        self.shown = f"mysql://127.0.0.1:{server.port}/{self.name}"
        self.database = "mysql"
        self.run(f"create database {self.name}")
        self.database = self.name

    def connect(self, user: str = "tester") -> Any:
        """Return a connection that is in a transaction from its first statement."""
        import pymysql

        return pymysql.connect(
            host="127.0.0.1",
            port=self.server.port,
            user=user,
            password="s3cret",
            database=self.database,
            init_command="set time_zone = '+00:00'",
        )

    def run(self, *statements: str) -> None:
        connection = self.connect()
        try:
            for one in statements:
                connection.cursor().execute(one)
                connection.commit()
        finally:
            connection.close()

    def rows(self, query: str) -> list[Any]:
        connection = self.connect()
        try:
            cursor = connection.cursor()
            cursor.execute(query)
            return list(cursor.fetchall())
        finally:
            connection.close()


@pytest.fixture
def mysql(mysql_server: Server) -> MySql:
    return MySql(mysql_server)
