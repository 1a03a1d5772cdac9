"""A running mirror: compares both clusters periodically, and copies records in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from ottla.copy_progress import CopyProgress, CopyReport
from ottla.errors import (
    ApplicationRecoverableError,
    ConfigError,
    KafkaError,
    KafkaTimeoutError,
    OffsetOutOfRangeError,
    ProducerFencedError,
    TransactionAbortableError,
)
from ottla.mirror.group_plan import GroupPlan
from ottla.mirror.record_copier import At, RecordCopier
from ottla.mirror.settings import MirrorSettings
from ottla.mirror.survey import MirrorSurvey
from ottla.mirror.topic_plan import TopicPlan
from ottla.model import TopicPartition

TURN_SECONDS = 0.5
"""The time that a turn waits for records."""
RESTARTABLE = (KafkaTimeoutError, ApplicationRecoverableError, TransactionAbortableError, OffsetOutOfRangeError)
"""Errors after which new clients can continue from the ledger."""
BACKOFF_SECONDS = 2.0
"""The pause before the mirror restarts with new clients."""


class Mirror:
    """Copies topics, configs and offsets of groups; each record exactly once, also across interruptions.

    `report_line` receives messages about changes and errors, `show` regularly the progress.
    """

    def __init__(
        self,
        settings: MirrorSettings,
        report_line: Callable[[str], None] = lambda text: None,
        show: Callable[[CopyReport], None] = lambda report: None,
        at: At = lambda step: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stopping = False
        self.groups: dict[str, GroupPlan] = {}
        """The last plan of each group."""
        self._settings = settings
        self._report_line, self._show, self._at, self._now = report_line, show, at, now
        self._progress = CopyProgress("copied", now())

    def stop(self) -> None:
        """Stop after the current transaction; may be called by any thread."""
        self.stopping = True

    def run(self) -> CopyReport:
        """Run until `stop`, or until all present records are copied with `once`; return the progress."""
        while True:
            try:
                return self._run_session()
            except (KafkaError, KafkaTimeoutError) as error:
                self._raise_if_permanent(error)
                self._report_line(f"{error}; retrying in {BACKOFF_SECONDS:g} s")
                time.sleep(BACKOFF_SECONDS)

    def _raise_if_permanent(self, error: KafkaError | KafkaTimeoutError) -> None:
        if isinstance(error, ProducerFencedError):
            raise ConfigError(
                "another mirror of this name has taken over; give each mirror into a cluster a --name of its own"
            ) from error
        again = isinstance(error, RESTARTABLE) or (isinstance(error, KafkaError) and error.retriable)
        if self._settings.once or self.stopping or not again:
            raise error

    def _run_session(self) -> CopyReport:
        with ExitStack() as stack:
            settings = self._settings
            source, target = (stack.enter_context(admin_of(side)) for side in (settings.source, settings.target))
            survey = MirrorSurvey(source, target, settings)
            copier = RecordCopier(settings, survey.ensure_ledger(survey.name()), self._at, self._report_line)
            stack.callback(copier.close)
            copier.open()
            return self._copy_until_stopped(survey, copier)

    def _copy_until_stopped(self, survey: MirrorSurvey, copier: RecordCopier) -> CopyReport:
        partitions = self._refresh(survey, copier)
        self._report_unmatched(survey)
        ends = copier.consumer.end_offsets(sorted(partitions)) if self._settings.once else None
        copier.consumer.bound(ends or {})
        compared_at = self._now()
        while not self.stopping and not (ends is not None and count_remaining(copier, ends) == 0):
            if partitions:
                self._progress.add(copier.copy_batch(TURN_SECONDS), self._now())
            else:
                time.sleep(TURN_SECONDS)
            if ends is None and self._now() - compared_at >= self._settings.refresh_seconds:
                self._move_groups(survey, copier, partitions)
                partitions, compared_at = self._refresh(survey, copier), self._now()
            self._show(self._report(copier, partitions, ends))
        self._move_groups(survey, copier, partitions)
        return self._report(copier, partitions, ends)

    def _report_unmatched(self, survey: MirrorSurvey) -> None:
        unmatched = [each for each in survey.find_unmatched() if each != ".*"]
        text = f"the source has no topic {' or '.join(map(repr, unmatched))}"
        if self._settings.once and len(unmatched) == len(self._settings.selection.topics):
            raise ConfigError(f"{text}; ottla topics list prints its topics")
        if unmatched:
            self._report_line(text + ("" if self._settings.once else "; it is copied once it exists"))

    def _refresh(self, survey: MirrorSurvey, copier: RecordCopier) -> set[TopicPartition]:
        found, plan = survey.make_topics()
        for line in change_lines(plan):
            self._report_line(line)
        copier.assign(found)
        return set(found)

    def _move_groups(self, survey: MirrorSurvey, copier: RecordCopier, partitions: set[TopicPartition]) -> None:
        self.groups = survey.move_groups(partitions, copier.ledger, copier.read_to)

    def _report(
        self, copier: RecordCopier, partitions: set[TopicPartition], ends: Mapping[TopicPartition, int] | None
    ) -> CopyReport:
        if ends is not None:
            return self._progress.report(count_remaining(copier, ends), self._now())
        lag = sum(copier.consumer.current_lag(tp) or 0 for tp in partitions)
        return self._progress.report(lag, self._now())


def count_remaining(copier: RecordCopier, ends: Mapping[TopicPartition, int]) -> int:
    """Return the number of offsets before the ends that are not read yet."""
    return sum(max(0, end - copier.read_to(tp)) for tp, end in ends.items())


def change_lines(plan: TopicPlan) -> list[str]:
    """Return a line per change in the target."""
    return [
        *(f"topic {name} created with {shape.partitions} partitions" for name, shape in plan.create.items()),
        *(f"topic {name} has {count} partitions now" for name, count in plan.grow.items()),
        *(f"topic {name}: {', '.join(f'{k}={v}' for k, v in it.items())}" for name, it in plan.alter.items()),
    ]


def admin_of(settings: Mapping[str, Any]) -> Any:
    """Return an admin client with the connection settings of the other clients."""
    from ottla.client.admin import Admin
    from ottla.client.admin.config import select_admin_settings

    return Admin(select_admin_settings(settings))
