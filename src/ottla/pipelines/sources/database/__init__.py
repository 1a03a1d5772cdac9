"""`type: database`: the rows of a table, those that are there and then those that come.

model ──► TableFeed.poll ──► bound (what can be settled) ──► query ──► rows
"""

from __future__ import annotations

from ottla.pipelines.sources.database.model import DatabaseSource

__all__ = ["DatabaseSource"]
