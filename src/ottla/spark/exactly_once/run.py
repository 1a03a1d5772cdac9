"""What the driver tells its tasks of a batch, and they it.

Values only, which travel by pickle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.producer.open_transaction import OpenTransaction
from ottla.model import TopicPartition
from ottla.spark.exactly_once.batch_plan import NO_PLAN, BatchPlan
from ottla.spark.exactly_once.marker import Announcement
from ottla.spark.exactly_once.rules import Mode

TRANSACTION_TIMEOUT_MS = 600_000
"""By default a transaction may take ten minutes: a task is not ready sooner than its slowest row."""


@dataclass(frozen=True)
class BatchRun:
    """One execution of one batch."""

    settings: Mapping[str, str]
    """Of the producer."""
    prefix: str
    place: TopicPartition
    """Whose offset is the mark."""
    mode: Mode
    announcement: Announcement
    plan: BatchPlan = NO_PLAN
    query: str | None = None
    """None: tasks find out, and nothing was announced."""
    job: bool = False
    """Whether this is a batch write of its own, which no other execution goes on with: it has no marks."""


@dataclass(frozen=True)
class TaskOutcome:
    """What became of a task's rows in Kafka."""

    task: int
    query: str
    batch: int | None
    already: bool = False
    """Whether they had been committed before."""
    held: OpenTransaction | None = None
    """The transaction that the driver is to end."""


def producer_settings(run: BatchRun, transactional_id: str) -> dict[str, str]:
    """The user's settings, and the transaction's."""
    return {"transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS), **run.settings, "transactional.id": transactional_id}
