"""The messages between the driver and the tasks of a batch, sent by pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.producer.open_transaction import OpenTransaction
from ottla.model import TopicPartition
from ottla.spark.exactly_once.batch_plan import NO_PLAN, BatchPlan
from ottla.spark.exactly_once.marker import Announcement
from ottla.spark.exactly_once.rules import Mode

TRANSACTION_TIMEOUT_MS = 600_000
"""The default timeout of a transaction, ten minutes: a transaction is open until the task's slowest row is computed."""


@dataclass(frozen=True)
class ExactlyOnceRun:
    """One execution of one batch."""

    settings: Mapping[str, str]
    """The settings of the producer."""
    prefix: str
    place: TopicPartition
    """The partition with the marks as offsets."""
    mode: Mode
    announcement: Announcement
    plan: BatchPlan = NO_PLAN
    query: str | None = None
    """None if nothing was announced; tasks then get it from Spark."""
    job: bool = False
    """True for a batch write outside of a stream. No other execution continues it, so it has no marks."""


@dataclass(frozen=True)
class TaskOutcome:
    """The result of a task."""

    task: int
    query: str
    batch: int | None
    already: bool = False
    """True if the rows had been committed before."""
    held: OpenTransaction | None = None
    """The transaction that the driver must end."""


def producer_settings(run: ExactlyOnceRun, transactional_id: str) -> dict[str, str]:
    """Return the user's settings with those of the transaction."""
    return {"transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS), **run.settings, "transactional.id": transactional_id}
