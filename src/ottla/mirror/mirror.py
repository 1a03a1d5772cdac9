"""A mirror at work: looks at both clusters now and then, and carries records in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from ottla.errors import (
    ApplicationRecoverableError,
    ConfigError,
    KafkaError,
    KafkaTimeoutError,
    OffsetOutOfRangeError,
    ProducerFencedError,
    TransactionAbortableError,
)
from ottla.mirror.carrier import At, Carrier
from ottla.mirror.group_plan import GroupPlan
from ottla.mirror.progress import Progress, Standing
from ottla.mirror.settings import MirrorSettings
from ottla.mirror.survey import Survey
from ottla.mirror.topic_plan import TopicPlan
from ottla.model import TopicPartition

TURN_SECONDS = 0.5
"""How long a turn waits for records."""
ANEW = (KafkaTimeoutError, ApplicationRecoverableError, TransactionAbortableError, OffsetOutOfRangeError)
"""What is mended by other clients that read the ledger anew."""
BACKOFF_SECONDS = 2.0
"""How long after a failure everything is begun anew."""


class Mirror:
    """Carries topics, configs and offsets of groups; each record once, whatever ends it between.

    `tell` is told in words what was done and what is wrong, `show` now and then how far it has come.
    """

    def __init__(
        self,
        settings: MirrorSettings,
        tell: Callable[[str], None] = lambda text: None,
        show: Callable[[Standing], None] = lambda standing: None,
        at: At = lambda step: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stopping = False
        self.groups: dict[str, GroupPlan] = {}
        """What was done for which group, the last time."""
        self._settings = settings
        self._tell, self._show, self._at, self._now = tell, show, at, now
        self._progress = Progress(now())

    def stop(self) -> None:
        """End after the transaction that is under way; from any thread."""
        self.stopping = True

    def run(self) -> Standing:
        """Until all is carried, if it is for once, or until `stop`; returns how far it came."""
        while True:
            try:
                return self._session()
            except (KafkaError, KafkaTimeoutError) as error:
                self._end_if_vain(error)
                self._tell(f"{error}; going on in {BACKOFF_SECONDS:g} s")
                time.sleep(BACKOFF_SECONDS)

    def _end_if_vain(self, error: KafkaError | KafkaTimeoutError) -> None:
        if isinstance(error, ProducerFencedError):
            raise ConfigError(
                "another mirror of this name has taken over; give each mirror into a cluster a --name of its own"
            ) from error
        again = isinstance(error, ANEW) or (isinstance(error, KafkaError) and error.retriable)
        if self._settings.once or self.stopping or not again:
            raise error

    def _session(self) -> Standing:
        with ExitStack() as stack:
            settings = self._settings
            source, target = (stack.enter_context(admin_of(side)) for side in (settings.source, settings.target))
            survey = Survey(source, target, settings)
            carrier = Carrier(settings, survey.ensure_ledger(survey.name()), self._at, self._tell)
            stack.callback(carrier.close)
            carrier.open()
            return self._carry(survey, carrier)

    def _carry(self, survey: Survey, carrier: Carrier) -> Standing:
        partitions = self._refresh(survey, carrier)
        self._tell_unmatched(survey)
        ends = carrier.consumer.end_offsets(sorted(partitions)) if self._settings.once else None
        carrier.consumer.bound(ends or {})
        looked = self._now()
        while not self.stopping and not (ends is not None and rest(carrier, ends) == 0):
            if partitions:
                self._progress.note(carrier.turn(TURN_SECONDS), self._now())
            else:
                time.sleep(TURN_SECONDS)
            if ends is None and self._now() - looked >= self._settings.refresh_seconds:
                self._move_groups(survey, carrier, partitions)
                partitions, looked = self._refresh(survey, carrier), self._now()
            self._show(self._standing(carrier, partitions, ends))
        self._move_groups(survey, carrier, partitions)
        return self._standing(carrier, partitions, ends)

    def _tell_unmatched(self, survey: Survey) -> None:
        unmatched = [each for each in survey.unmatched() if each != ".*"]
        text = f"the source has no topic {' and none '.join(map(repr, unmatched))}"
        if self._settings.once and len(unmatched) == len(self._settings.selection.topics):
            raise ConfigError(f"{text}; ottla topics list names those that it has")
        if unmatched:
            self._tell(text + ("" if self._settings.once else "; it is carried once there is one"))

    def _refresh(self, survey: Survey, carrier: Carrier) -> set[TopicPartition]:
        found, plan = survey.make_topics()
        for line in told(plan):
            self._tell(line)
        carrier.assign(found)
        return set(found)

    def _move_groups(self, survey: Survey, carrier: Carrier, partitions: set[TopicPartition]) -> None:
        self.groups = survey.move_groups(partitions, carrier.ledger, carrier.read_to)

    def _standing(
        self, carrier: Carrier, partitions: set[TopicPartition], ends: Mapping[TopicPartition, int] | None
    ) -> Standing:
        if ends is not None:
            return self._progress.standing(rest(carrier, ends), self._now())
        lag = sum(carrier.consumer.current_lag(tp) or 0 for tp in partitions)
        return self._progress.standing(lag, self._now())


def rest(carrier: Carrier, ends: Mapping[TopicPartition, int]) -> int:
    """Offsets before the ends that are not read yet."""
    return sum(max(0, end - carrier.read_to(tp)) for tp, end in ends.items())


def told(plan: TopicPlan) -> list[str]:
    """What was done in the target, a line each."""
    return [
        *(f"topic {name} made with {shape.partitions} partitions" for name, shape in plan.create.items()),
        *(f"topic {name} has {count} partitions now" for name, count in plan.grow.items()),
        *(f"topic {name}: {', '.join(f'{k}={v}' for k, v in it.items())}" for name, it in plan.alter.items()),
    ]


def admin_of(settings: Mapping[str, Any]) -> Any:
    """An admin client that gets in as the other clients do."""
    from ottla.client.admin import Admin
    from ottla.client.admin.config import AdminConfig
    from ottla.client.config.synonyms import understood
    from ottla.config import options_of

    known = {option.name for option in options_of(AdminConfig)}
    return Admin({name: it for name, it in understood(settings).items() if name.replace("_", ".") in known})
