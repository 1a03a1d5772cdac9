"""Pipelines, and databases that they read and write."""

from __future__ import annotations

from tests.mysql import mysql, mysql_server
from tests.postgres import postgresql_server, sql

__all__ = ["mysql", "mysql_server", "postgresql_server", "sql"]
