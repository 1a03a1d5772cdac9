"""Pipelines, and databases that they read and write."""

from __future__ import annotations

from tests.postgres import postgresql_server, sql

__all__ = ["postgresql_server", "sql"]
