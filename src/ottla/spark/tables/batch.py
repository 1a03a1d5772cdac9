"""The query and batch that Spark is writing, from its tasks and its checkpoint.

The names of the local properties are not documented by Spark; tests check them.
"""

from __future__ import annotations

import hashlib

from pyspark import TaskContext

from ottla.errors import ConfigError
from ottla.spark.tables.errors import TableError
from ottla.spark.tables.options import local_folder


def batch_of_task() -> tuple[str, int]:
    """Return the id of the task's query, and the number of its batch."""
    context = TaskContext.get()
    query = context.getLocalProperty("sql.streaming.queryId") if context else None
    batch = context.getLocalProperty("streaming.sql.batchId") if context else None
    if query is None or batch is None:
        raise TableError("Spark does not pass the query and batch to its tasks; install pyspark 4.2 or 4.3")
    return query, int(batch)


def attempt_name() -> str:
    """Return the start of the names of a task's files: its number and attempt."""
    context = TaskContext.get()
    assert context is not None
    return f"part-{context.partitionId():05}-{context.attemptNumber()}"


def offsets_digest(checkpoint: str | None, batch: int) -> str | None:
    """Return a digest of the batch's entry in Spark's offset log, which is the same when the batch runs again; None if it cannot be read."""
    if checkpoint is None:
        return None
    try:
        entry = local_folder("checkpointLocation", checkpoint) / "offsets" / str(batch)
        return hashlib.sha256(entry.read_bytes()).hexdigest()[:16]
    except (ConfigError, OSError):
        return None
