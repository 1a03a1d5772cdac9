"""`type: database`: rows into a table. Each batch is one transaction that also writes the batch's mark.

model ──► one task for each batch ──► TableWriter ──► statements
"""

from __future__ import annotations

from ottla.pipelines.sinks.database.model import DatabaseSink

__all__ = ["DatabaseSink"]
