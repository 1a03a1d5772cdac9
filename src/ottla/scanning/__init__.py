"""Lazy reads of topics for data frames: `ottla.scan` for Polars and `ottla.scan_duckdb` for DuckDB.

    filters, columns, limit ──► polars_source ──┐
                                                ├──► topic_scan ──► Consumer, bounded by the end offsets
    columns, offsets, times ──► duckdb_relation ┘         ▲
                                      offset_span ────────┘ (pure: which offsets a filter needs)

A read is a batch read: it ends at the end offsets of its start, joins no group and commits nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.lazy_names import loader_of

HOME = {
    "scan": "ottla.scanning.polars_source",
    "scan_duckdb": "ottla.scanning.duckdb_relation",
    "TopicScan": "ottla.scanning.topic_scan",
}

__all__ = [*HOME]

if TYPE_CHECKING:
    from ottla.scanning.duckdb_relation import scan_duckdb as scan_duckdb
    from ottla.scanning.polars_source import scan as scan
    from ottla.scanning.topic_scan import TopicScan as TopicScan


_load = loader_of(__name__, HOME)


def __getattr__(name: str) -> Any:
    return _load(name)
