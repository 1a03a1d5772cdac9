"""Tests that ask a PostgreSQL or a MariaDB go to one process each, where one is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mysql import mysql, mysql_server
from tests.postgres import postgresql_server, sql

__all__ = ["mysql", "mysql_server", "postgresql_server", "sql"]
SERVERS = {"sql": "postgresql", "postgresql": "postgresql", "mysql": "mysql"}
"""By the names of fixtures and of kinds."""
HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and (server := server_of(item)):
            item.add_marker(pytest.mark.xdist_group(server))


def server_of(item: pytest.Item) -> str | None:
    """The database server of a test, from a fixture or from the test's parameter."""
    given = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    names = [*getattr(item, "fixturenames", ()), *(one for one in given if isinstance(one, str))]
    return next((SERVERS[name] for name in names if name in SERVERS), None)
