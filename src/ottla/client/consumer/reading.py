"""How a consumer gets at records: it keeps up its membership and its positions, fetches ahead, hands out.

What waits is steps, for callers that block and for callers that await.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TypeVar

from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.events import POLLED
from ottla.client.consumer.metrics import take_metrics
from ottla.client.consumer.records import RecordSlice
from ottla.client.consumer.subscription_state import SubscriptionType
from ottla.client.interface.arguments import checked_flag, checked_partition, checked_timeout, checked_whole
from ottla.client.metadata.missing_partitions import MissingPartitions
from ottla.client.metrics.client_metrics import ClientMetrics
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, IllegalStateError, OffsetOutOfRangeError
from ottla.model import FOREVER, TopicPartition
from ottla.records.columns import Columns

T = TypeVar("T")
LOG = logging.getLogger(__name__)


class Reading:
    """What `poll` and `position` do."""

    def __init__(self, core: ConsumerCore) -> None:
        self._core = core
        self._clock = core.clock
        self._client = core.client
        self._fetcher = core.fetcher
        self._metadata = core.metadata
        self._subscriptions = core.subscriptions
        self.sensors = core.polls
        self._missing = MissingPartitions(core.client_id)
        self._waiting_since: float | None = None
        self._seen = (0, 0)
        """Version of the metadata and count of assignments that were looked at last."""

    def records(self, timeout: float) -> Steps[list[RecordSlice]]:
        return self._poll_for(timeout, self._collect_records)

    def columns(
        self, timeout: float, max_bytes: int | None, *, with_headers: bool, only: Collection[str] | None = None
    ) -> Steps[list[tuple[TopicPartition, Columns]]]:
        """What `poll_columns` returns; of columns, `only` those that are named."""
        checked_flag("include_headers", with_headers)
        if max_bytes is not None:
            checked_whole("max_bytes", max_bytes, "how many bytes to return at most")
        collect = self._fetcher.collect_columns
        return self._poll_for(timeout, lambda: collect(max_bytes, with_headers=with_headers, only=only))

    def position(self, partition: TopicPartition, timeout: float | None) -> Steps[int]:
        """The offset that the user gets next, looked up when it is not known yet."""
        tp = checked_partition(partition)
        deadline = self._clock.monotonic() + self._core.patience(timeout)
        while (found := self._subscriptions.next_offset(tp)) is None:
            span = self._ensure_positions()
            now = self._clock.monotonic()
            self._missing.note(tp, self._metadata.cluster, now)
            if now >= deadline:
                self._core.offset_fetcher.raise_unknown([tp])
                raise self._core.late(f"the position of {tp} was not found", timeout)
            yield min(deadline - now, span, self._subscriptions.next_retry(now))
        return found

    def _poll_for(self, timeout: float, collect: Callable[[], list[T]]) -> Steps[list[T]]:
        """What `collect` finds, waiting for it as long as nothing comes and there is time.

        Ends with nothing, too, as soon as positions have moved past what holds no records (as in Java, KAFKA-12980): who
        reads up to an offset is there perhaps.
        """
        if self._subscriptions.type is SubscriptionType.NONE:
            raise IllegalStateError("nothing is assigned to this consumer; call subscribe() or assign() first")
        now = self._clock.monotonic()
        deadline = now + checked_timeout(timeout)
        self.sensors.begin(now)
        if self._core.events.active:
            self._tell_poll()
        late = False
        while True:
            self._client.maybe_trigger_wakeup()
            span = min(self._keep_up(), self._core.statistics.look(now, self._take_metrics))
            listening = self._core.coordinator is not None and self._core.coordinator.listening
            found = [] if listening else collect()
            if found or late or self._fetcher.take_passed():
                if not found:
                    self._check_open()  # a listener may have unsubscribed just now
                    self.sensors.end(self._clock.monotonic())
                    return found
                self._waiting_since = None
                self.sensors.end(self._clock.monotonic())
                return found
            if not listening:
                span = min(span, self._ensure_positions())
                self._fetcher.send_fetches()
            now = self._clock.monotonic()
            self._give_up_without_a_broker(now)
            yield min(deadline - now, span, self._subscriptions.next_retry(now))
            self._check_open()
            now = self._clock.monotonic()
            late = now >= deadline

    def _take_metrics(self) -> ClientMetrics:
        return take_metrics(self._core)

    def _check_open(self) -> None:
        """Somebody else may have closed the consumer while this one was waiting."""
        if self._core.closed:
            raise IllegalStateError("the consumer was closed while it was polled")
        if self._subscriptions.type is SubscriptionType.NONE:
            raise IllegalStateError("the consumer was unsubscribed while it was polled")

    def _tell_poll(self) -> None:
        if self._core.coordinator is not None:
            gap = self._core.coordinator.heartbeat.poll_gap(self._clock.monotonic())
            self._core.events.tell_of(POLLED, gap * 1000 if gap < FOREVER else 0.0)

    def _collect_records(self) -> list[RecordSlice]:
        slices = self._fetcher.collect_fetch(self._core.config.max_poll_records)
        if slices and self._fetcher.send_fetches():
            self._client.transmit_sends()
        return slices

    def _keep_up(self) -> float:
        """Do what membership and news of the cluster ask for; returns the seconds after which to do so again."""
        # Of what was assigned since, too, or a topic that is made anew before the next news would pass for the old one.
        seen = (self._metadata.version, self._subscriptions.assignments)
        if seen != self._seen:
            self._seen = seen
            self._notice_new_topics()
            self._report_missing_partitions()
        coordinator = self._core.coordinator
        if coordinator is None:
            return FOREVER
        now = self._clock.monotonic()
        coordinator.poll(now)
        return coordinator.wait_span(now)

    def _notice_new_topics(self) -> None:
        begun = self._subscriptions.notice_new_topics(self._metadata.cluster)
        if begun:
            partitions = ", ".join(map(str, begun))
            LOG.warning(
                "[%s] %s: the topic was deleted and made anew; starting by auto.offset.reset",
                self._core.client_id,
                partitions,
            )
            self._fetcher.clear_buffered(begun)

    def _report_missing_partitions(self) -> None:
        """Warn of assigned partitions that their topics do not have: they are waited for without an end."""
        now = self._clock.monotonic()
        for tp in self._subscriptions.assigned():
            self._missing.note(tp, self._metadata.cluster, now)

    def _ensure_positions(self) -> float:
        """Have the missing positions looked up; returns the seconds after which to look again.

        Raises when there is no committed offset and `auto.offset.reset` is none.
        """
        coordinator = self._core.coordinator
        span = FOREVER if coordinator is None else coordinator.committed.refresh()
        lost = self._subscriptions.lost()
        if lost:
            raise OffsetOutOfRangeError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"no position for {', '.join(map(str, lost))}, and auto.offset.reset = none: call seek() first",
            )
        self._core.offset_fetcher.reset_positions()
        return span

    def _give_up_without_a_broker(self, now: float) -> None:
        """A broker that was never there is an error in the end, not an endless silence."""
        if self._metadata.version:
            return
        self._waiting_since = self._waiting_since or now
        patience = self._core.config.default_api_timeout_ms
        if now - self._waiting_since >= patience / 1000:
            raise self._client.client.unavailable(patience, "default.api.timeout.ms")
