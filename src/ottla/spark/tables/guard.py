"""Whether a batch is still to be written, from what the table remembers of its query. Pure.

A table remembers, in the commit that adds a batch, the query's id and the number of the batch, and what Spark's offset
log said of it. So a batch that is done again after a crash is left out; and what is no repetition stops.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.spark.tables.errors import CheckpointError

REMEDY = "start this query with a checkpoint of its own"


@dataclass(frozen=True)
class BatchMark:
    """A batch, as its table remembers it."""

    query: str
    """Spark's id of the query, which is in its checkpoint; or what `txnAppId` says."""
    batch: int
    offsets: str | None = None
    """A digest of the batch's entry in Spark's offset log, which a repetition has in common; None if not known."""


def gap(mark: BatchMark, done: BatchMark | None, table: str) -> str | None:
    """What to warn of: a query that is in its middle, and a table that has never heard of it."""
    if done is not None or mark.batch == 0:
        return None
    return (
        f"table {table} has no batch of query {mark.query} yet, and this is batch {mark.batch}: rows of the batches before "
        f"are not in it; if this is the checkpoint of another query, or the table is a new one, stop and {REMEDY}"
    )


def is_due(mark: BatchMark, done: BatchMark | None, table: str) -> bool:
    """Whether to write; `done` is the last batch of the same query in the table.

    CheckpointError where going on would lose rows or repeat them.
    """
    if done is None or done.batch < mark.batch:
        return True
    if done.batch > mark.batch:
        raise CheckpointError(
            f"table {table} has batch {done.batch} of query {mark.query} already, so batch {mark.batch} comes too late: "
            f"the checkpoint is an old copy, or another query goes on with it; restore the newest one, or {REMEDY}"
        )
    if None not in (mark.offsets, done.offsets) and mark.offsets != done.offsets:
        raise CheckpointError(
            f"table {table} has another batch {mark.batch} of query {mark.query}: two queries use one checkpoint, or "
            f"copies of it; stop one of them, or {REMEDY}"
        )
    return False
