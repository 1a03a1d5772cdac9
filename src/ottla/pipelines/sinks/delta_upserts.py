"""Merges batches into a Delta table by a key. The table's log has the last batch of the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from ottla.pipelines.dead_letters import DeadLetterTopic
from ottla.pipelines.sinks.missing_values import check_rows, put_aside
from ottla.pipelines.sinks.upserts import DELETED
from ottla.spark.tables.attempts import commit_once
from ottla.spark.tables.batch import offsets_digest
from ottla.spark.tables.delta_store import DeltaStore, commit_properties, last_batch_of
from ottla.spark.tables.errors import TableError
from ottla.spark.tables.guard import BatchMark


@dataclass(frozen=True)
class DeltaUpserts:
    """Writes the batches of one query."""

    store: DeltaStore
    key: tuple[str, ...]
    checkpoint: str
    dead_letters: DeadLetterTopic | None = None
    """The dead-letter topic for rows that the table rejects; None: the batch fails."""

    def write(self, batch: DataFrame, number: int, query: str) -> int:
        """Write a batch once, even if it is called several times; return the number of rows put aside."""
        from deltalake.exceptions import CommitFailedError

        columns = StructType([one for one in batch.schema.fields if one.name != DELETED])
        required = [name for name in self.store.prepare(columns).required if name not in self.key]
        rows, bad = check_rows(batch.toArrow(), self.store.name, required, self.key)
        put_aside(bad, self.dead_letters)
        mark = BatchMark(query, number, offsets_digest(self.checkpoint, number))
        changes = last_of_each(rows, self.key)
        if changes.num_rows:
            commit_once(
                self.store.name,
                self.store.open,
                last_batch_of,
                lambda table: self.merge(table, changes, columns, mark),
                CommitFailedError,
                mark,
            )
        elif not self.store.has_query(query):
            self.store.commit([], columns, False, mark)  # the table must know the query before its first rows
        return len(bad)

    def merge(self, table: Any, rows: pa.Table, columns: StructType, mark: BatchMark) -> None:
        from deltalake.exceptions import CommitFailedError, DeltaError

        fields = {quoted(name): f"s.{quoted(name)}" for name in columns.names}
        same = " and ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in self.key)
        gone = f"s.{quoted(DELETED)}" if DELETED in rows.column_names else None
        stays = None if gone is None else f"not {gone}"
        try:
            table = self.store.add_columns(table, columns)
            merger = table.merge(
                rows, same, source_alias="s", target_alias="t", commit_properties=commit_properties(mark)
            )
            merger = merger if gone is None else merger.when_matched_delete(gone)
            merger.when_matched_update(fields, stays).when_not_matched_insert(fields, stays).execute()
        except CommitFailedError:
            raise
        except DeltaError as error:
            raise TableError(f"table {self.store.name} rejected a batch: {error}") from None


def last_of_each(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the last row of each key."""
    numbered = rows.append_column("_number", pa.array(range(rows.num_rows), pa.int64()))
    last: Any = numbered.group_by(list(key)).aggregate([("_number", "max")]).column("_number_max")
    return rows.take(
        pc.sort_indices(last).take(pa.array([], pa.int64()))
        if not rows.num_rows
        else pc.take(last, pc.sort_indices(last))
    )


def quoted(name: str) -> str:
    """Return a column's name quoted for expressions of deltalake."""
    return "`" + name.replace("`", "``") + "`"
