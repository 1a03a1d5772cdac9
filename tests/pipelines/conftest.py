"""Tests that ask a PostgreSQL go to one process, where one is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgres import postgresql_server, sql

__all__ = ["postgresql_server", "sql"]
HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and "sql" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("postgresql"))
