"""Which batch of which query Spark is writing: what it says in its tasks, and what its checkpoint says.

The names of the local properties are Spark's own and not in its documentation; tests hold them.
"""

from __future__ import annotations

import hashlib

from pyspark import TaskContext

from ottla.errors import ConfigError
from ottla.spark.tables.errors import TableError
from ottla.spark.tables.options import local_folder


def batch_of_task() -> tuple[str, int]:
    """The id of the query that this task writes for, and the number of its batch."""
    context = TaskContext.get()
    query = context.getLocalProperty("sql.streaming.queryId") if context else None
    batch = context.getLocalProperty("streaming.sql.batchId") if context else None
    if query is None or batch is None:
        raise TableError("Spark does not tell which query and batch writes here; install a pyspark of 4.2 or 4.3")
    return query, int(batch)


def attempt_name() -> str:
    """The beginning of the names of a task's files: its number and attempt."""
    context = TaskContext.get()
    assert context is not None
    return f"part-{context.partitionId():05}-{context.attemptNumber()}"


def offsets_digest(checkpoint: str | None, batch: int) -> str | None:
    """A digest of the batch's entry in Spark's offset log, the same whenever it is done again; None if out of reach."""
    if checkpoint is None:
        return None
    try:
        entry = local_folder("checkpointLocation", checkpoint) / "offsets" / str(batch)
        return hashlib.sha256(entry.read_bytes()).hexdigest()[:16]
    except (ConfigError, OSError):
        return None
