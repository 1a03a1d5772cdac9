"""`type: postgres-cdc`: each change of a table, by logical replication.

model ──► Slot ──► ChangeFeed.poll ──► pgoutput (bytes to messages) ──► Transactions (whole changes) ──► envelope (rows)
"""

from __future__ import annotations

from ottla.pipelines.sources.postgres_cdc.model import PostgresCdcSource

__all__ = ["PostgresCdcSource"]
