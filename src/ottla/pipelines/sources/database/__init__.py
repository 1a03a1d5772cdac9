"""`type: database`: the rows of a table, first those that exist and then new ones.

model ──► TableFeed.poll ──► bound (the settled rows) ──► query ──► rows
"""

from __future__ import annotations

from ottla.pipelines.sources.database.model import DatabaseSource

__all__ = ["DatabaseSource"]
