"""Convert Arrow tables to batches without creating a record per row.

    table ─► pieces ─► rows grouped by partition ─► encoded batches

The only module of the producer that needs pyarrow. Memory is bounded: a piece is created when the last one is queued.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ottla.client.producer.partitioner import ANY, Partitioner, choose_any, choose_by_key
from ottla.errors import SerializationError
from ottla.extras import extra
from ottla.records.arrow import rows_of
from ottla.records.columns import Rows
from ottla.records.murmur2 import partitions_for

with extra("arrow"):
    import pyarrow as pa
    import pyarrow.compute as pc

Numbers = Any
"""An Arrow array of int32."""
PIECE_BYTES = 16 * 1024 * 1024
DEFAULT_KEY = "key"


@dataclass(frozen=True)
class TableColumns:
    """The names of the columns of a record; None for absent ones."""

    key: str | None
    value: str | None
    headers: str | None
    timestamp: str | None
    partition: str | None

    def __post_init__(self) -> None:
        for role, name in vars(self).items():
            if name is not None and not isinstance(name, str):
                raise TypeError(f"{role} = {name!r}: must be the name of a column, such as {role!r}, or None")

    def match_schema(self, schema: pa.Schema) -> TableColumns:
        """Return the columns with a key only if the default key column exists."""
        absent = self.key == DEFAULT_KEY and self.key not in schema.names
        return replace(self, key=None) if absent else self


class RowGroup(NamedTuple):
    """Rows for the same partition."""

    partition: int
    """`ANY` if each batch may be sent to another partition."""
    rows: Rows


def group_by_partition(
    table: pa.Table | pa.RecordBatch,
    columns: TableColumns,
    topic: str,
    partitions: int,
    partitioner: Partitioner,
    now_ms: int,
) -> Iterator[RowGroup]:
    """Yield the rows of `table` by partition, in order within each, piece by piece."""
    if not isinstance(table, pa.Table | pa.RecordBatch):
        raise SerializationError(f"a {type(table).__name__} is not a table; pass a pyarrow Table or RecordBatch")
    columns = columns.match_schema(table.schema)
    only = None if columns.partition is not None else find_only_partition(columns, partitions, partitioner)
    for piece in split_table(table):
        if only is not None:
            parts: Iterable[tuple[int, pa.RecordBatch]] = [(only, piece)]
        else:
            parts = split_by_partition(piece, choose_partitions(piece, columns, topic, partitions, partitioner))
        for partition, part in parts:
            for rows in rows_of(
                part,
                key=columns.key,
                value=columns.value,
                headers=columns.headers,
                timestamp=columns.timestamp,
                default_timestamp=now_ms,
            ):
                yield RowGroup(partition, rows)


def split_table(table: pa.Table | pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split the table into record batches of about `PIECE_BYTES`; smaller chunks are joined."""
    whole = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
    step = max(1, PIECE_BYTES * whole.num_rows // max(1, whole.nbytes))
    for first in range(0, whole.num_rows, step):
        part = whole.slice(first, step)
        yield from part.combine_chunks().to_batches()


def choose_partitions(
    piece: pa.RecordBatch, columns: TableColumns, topic: str, partitions: int, partitioner: Partitioner
) -> Numbers:
    """Return the partition of each row, or `ANY`: from its column, else from the partitioner."""
    if columns.partition is None:
        return choose_by_partitioner(piece, columns, topic, partitions, partitioner)
    given: Any = find_partition_column(piece, columns.partition)
    there = pa.array(range(partitions), pa.int32())
    wrong = given.drop_null().filter(pc.invert(pc.is_in(given.drop_null(), there)))
    if len(wrong):
        raise ValueError(f"partition {wrong[0]} in column {columns.partition!r}: {topic!r} has {partitions}")
    if given.null_count:
        given = pc.coalesce(given, choose_by_partitioner(piece, columns, topic, partitions, partitioner))
    return given


def find_partition_column(piece: pa.RecordBatch, name: str) -> Numbers:
    if name not in piece.schema.names or not pa.types.is_integer(piece.schema.field(name).type):
        there = ", ".join(f"{field.name}: {field.type}" for field in piece.schema)
        raise SerializationError(f"no integer column {name!r} for the partition; the columns are {there}")
    return piece.column(name).cast(pa.int32())


def find_only_partition(columns: TableColumns, partitions: int, partitioner: Partitioner) -> int | None:
    """Return the partition of all rows if it does not depend on them, else None."""
    if partitions == 1:
        return 0
    return ANY if partitioner is choose_any or (partitioner is choose_by_key and columns.key is None) else None


def choose_by_partitioner(
    piece: pa.RecordBatch, columns: TableColumns, topic: str, partitions: int, partitioner: Partitioner
) -> Numbers:
    """Return the partition of each row as chosen by the partitioner; Kafka's own handles all rows at once."""
    only = find_only_partition(columns, partitions, partitioner)
    if only is not None:
        return pa.repeat(pa.scalar(only, pa.int32()), piece.num_rows)
    chosen: list[Numbers] = []
    for rows in rows_of(piece, key=columns.key, value=None if partitioner is choose_by_key else columns.value):
        if partitioner is choose_by_key:
            numbers = partitions_for(rows.keys, partitions)
        else:
            wanted = (partitioner(topic, rows.keys.get(i), rows.values.get(i), partitions) for i in range(rows.count))
            numbers = memoryview(array("i", wanted))
        chosen.append(pa.Array.from_buffers(pa.int32(), rows.count, [None, pa.py_buffer(numbers)]))
    return pa.concat_arrays(chosen)


def split_by_partition(piece: pa.RecordBatch, chosen: Numbers) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of each partition, in order."""
    counted: Any = pc.value_counts(chosen)
    counts = {entry["values"]: entry["counts"] for entry in counted.to_pylist()}
    if len(counts) > 1:  # the sort is stable
        piece = piece.take(pc.array_sort_indices(chosen))
    first = 0
    for partition in sorted(counts):
        yield partition, piece.slice(first, counts[partition])
        first += counts[partition]
