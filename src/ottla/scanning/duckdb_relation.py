"""`ottla.scan_duckdb`: topics as a relation of DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ottla.extras import extra
from ottla.scanning.topic_scan import Offsets, Time, TopicScan

if TYPE_CHECKING:
    import duckdb

    from ottla.client.config.typed_settings import ConsumerSettings
    from ottla.schemas import Schema, SchemaRegistryClient


def scan_duckdb(
    topics: str | Iterable[str],
    config: Mapping[str, Any] | None = None,
    /,
    *,
    connection: duckdb.DuckDBPyConnection | None = None,
    columns: Sequence[str] | None = None,
    partitions: Iterable[int] | None = None,
    start: Offsets | None = None,
    end: Offsets | None = None,
    start_time: Time = None,
    end_time: Time = None,
    include_headers: bool = False,
    value_format: str | None = None,
    key_format: str | None = None,
    registry: SchemaRegistryClient | Mapping[str, Any] | str | None = None,
    value_schema: int | str | Schema | None = None,
    key_schema: int | str | Schema | None = None,
    decode_errors: str = "raise",
    **settings: Unpack[ConsumerSettings],
) -> duckdb.DuckDBPyRelation:
    """Return the current records of topics as a relation of DuckDB, of its default connection or of `connection`.

    Each execution of the relation reads up to the end offsets of its start, as the records arrive. DuckDB passes no
    filters to such a source: limit the read with `columns`, `partitions`, `start`, `end`, `start_time` and `end_time`,
    which are those of `ottla.scan`.
    """
    with extra("sql"):
        import duckdb

    topic_scan = TopicScan(
        topics,
        config,
        columns=columns,
        partitions=partitions,
        start=start,
        end=end,
        start_time=start_time,
        end_time=end_time,
        include_headers=include_headers,
        value_format=value_format,
        key_format=key_format,
        registry=registry,
        value_schema=value_schema,
        key_schema=key_schema,
        decode_errors=decode_errors,
        **settings,
    )
    return (connection or duckdb.default_connection()).from_arrow(topic_scan)
