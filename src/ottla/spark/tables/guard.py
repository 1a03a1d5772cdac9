"""Decides whether a batch must still be written, from the batch that the table stores for its query. Pure.

The commit that adds a batch stores the query's id, the batch's number and a digest of its entry in Spark's offset log.
So a batch that runs again after a crash is skipped, and a batch that is not a repetition raises an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.spark.tables.errors import CheckpointError

REMEDY = "start this query with its own checkpoint"


@dataclass(frozen=True)
class BatchMark:
    """A batch, as stored in its table."""

    query: str
    """Spark's id of the query, from its checkpoint; or `txnAppId`."""
    batch: int
    offsets: str | None = None
    """A digest of the batch's entry in Spark's offset log, which is the same in a repetition; None if it is not known."""


def describe_gap(mark: BatchMark, done: BatchMark | None, table: str) -> str | None:
    """Return a warning if the query has had batches before, and the table has none of them."""
    if done is not None or mark.batch == 0:
        return None
    return (
        f"table {table} has no batch of query {mark.query} yet, and this is batch {mark.batch}: rows of the batches before "
        f"are not in it; if this is the checkpoint of another query, or the table is a new one, stop and {REMEDY}"
    )


def is_due(mark: BatchMark, done: BatchMark | None, table: str) -> bool:
    """Return True if the batch must be written; `done` is the last batch of the query in the table.

    CheckpointError if continuing would lose rows or write them twice.
    """
    if done is None or done.batch < mark.batch:
        return True
    if done.batch > mark.batch:
        raise CheckpointError(
            f"table {table} has batch {done.batch} of query {mark.query} already, so batch {mark.batch} is too late: "
            f"the checkpoint is an old copy, or another query continues with it; restore the newest one, or {REMEDY}"
        )
    if None not in (mark.offsets, done.offsets) and mark.offsets != done.offsets:
        raise CheckpointError(
            f"table {table} has another batch {mark.batch} of query {mark.query}: two queries use one checkpoint, or "
            f"copies of it; stop one of them, or {REMEDY}"
        )
    return False
