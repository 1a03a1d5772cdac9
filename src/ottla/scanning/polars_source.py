"""`ottla.scan`: topics as a lazy frame of Polars.

Polars passes the columns, the filter and the limit of a query to the source. Filters on topic, partition, offset and
timestamp decide which offsets are fetched; the whole filter is then applied to the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from ottla.extras import extra
from ottla.model import TopicPartition
from ottla.scanning.offset_span import EVERYTHING, OffsetSpan, find_span
from ottla.scanning.topic_scan import Offsets, Time, TopicScan

if TYPE_CHECKING:
    import polars as pl

    from ottla.client.config.typed_settings import ConsumerSettings
    from ottla.schemas import Schema, SchemaRegistryClient


def scan(
    topics: str | Iterable[str],
    config: Mapping[str, Any] | None = None,
    /,
    *,
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
) -> pl.LazyFrame:
    """Return a lazy frame of the current records of topics: `ottla.scan("orders", bootstrap_servers="localhost:9092")`.

    Each `collect` reads up to the end offsets of its start. It reads committed records only, unless `isolation_level`
    says otherwise. Filters on topic, partition, offset and the earliest timestamp limit what is fetched, and so do
    `start`, `end` (exclusive offsets of partitions), `start_time` and `end_time`. The other arguments are those of
    `Consumer.poll_arrow`, and settings of a Consumer.
    """
    with extra("polars"):
        import polars as pl
        from polars.io.plugins import register_io_source

    topic_scan = TopicScan(
        topics,
        config,
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

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        limits = FilterLimits(predicate)
        left = limit
        # The filter of the rows may need all rows to find the first ones that match.
        for table in topic_scan.read(limits.narrow, columns=columns, max_rows=limit if predicate is None else None):
            frame = pl.from_arrow(table, rechunk=False)
            assert isinstance(frame, pl.DataFrame)
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            if frame.height:
                yield frame
            if left == 0:
                return

    def schema() -> pl.Schema:
        frame = pl.from_arrow(topic_scan.schema.empty_table())
        assert isinstance(frame, pl.DataFrame)
        return frame.schema

    return register_io_source(read, schema=schema)


class FilterLimits:
    """The offsets that a filter of Polars needs."""

    def __init__(self, predicate: pl.Expr | None) -> None:
        import polars as pl

        self._polars = pl
        self._node: Any = None
        if predicate is not None:
            try:
                self._node = json.loads(predicate.meta.serialize(format="json"))
            except pl.exceptions.PolarsError:  # such as a Python function
                self._node = None

    def narrow(self, tp: TopicPartition) -> OffsetSpan | None:
        """Return the offsets of a partition that the filter can need; None if it needs none."""
        if self._node is None:
            return EVERYTHING
        pl = self._polars
        frame = pl.DataFrame(
            {"topic": [tp.topic], "partition": [tp.partition]}, schema={"topic": pl.String, "partition": pl.Int32}
        )

        def evaluate(node: Any) -> Any:
            try:
                expression = pl.Expr.deserialize(json.dumps(node).encode(), format="json")
                return frame.select(expression.alias("value"))["value"].item()
            except (pl.exceptions.PolarsError, ValueError):
                return None

        return find_span(self._node, evaluate)
