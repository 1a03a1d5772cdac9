"""`type: database`: rows into a table, each batch in one transaction that also has the batch's mark.

model ──► one task for each batch ──► TableWriter ──► statements
"""

from __future__ import annotations

from ottla.pipelines.sinks.database.model import DatabaseSink

__all__ = ["DatabaseSink"]
