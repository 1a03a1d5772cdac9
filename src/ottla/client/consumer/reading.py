"""The poll loop of a consumer: it maintains membership and positions, fetches ahead, and returns records.

Written as steps, for blocking and asyncio callers. Each round of `_poll_for`:

1. Handle changes of the metadata and of the group (`_maintain`). This may call the rebalance listener. 2. Return
buffered data, if there is any. While a coroutine of the listener runs, no data is returned or fetched. 3. Otherwise
look up missing positions, send fetches, and wait for the network until something is due.
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


class RecordReader:
    """Implements `poll` and `position`."""

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
        self._handled = (0, 0)
        """The metadata version and the assignment count that were handled last."""

    def records(self, timeout: float) -> Steps[list[RecordSlice]]:
        return self._poll_for(timeout, self._collect_records)

    def columns(
        self, timeout: float, max_bytes: int | None, *, with_headers: bool, only: Collection[str] | None = None
    ) -> Steps[list[tuple[TopicPartition, Columns]]]:
        """Return the result of `poll_columns`, reduced to the columns in `only`."""
        checked_flag("include_headers", with_headers)
        if max_bytes is not None:
            checked_whole("max_bytes", max_bytes, "the largest number of bytes to return")
        collect = self._fetcher.collect_columns
        return self._poll_for(timeout, lambda: collect(max_bytes, with_headers=with_headers, only=only))

    def position(self, partition: TopicPartition, timeout: float | None) -> Steps[int]:
        """Return the offset of the next record for the user. An unknown position is looked up first."""
        tp = checked_partition(partition)
        deadline = self._clock.monotonic() + self._core.timeout_seconds(timeout)
        while (found := self._subscriptions.next_offset(tp)) is None:
            span = self._ensure_positions()
            now = self._clock.monotonic()
            self._missing.check_partition(tp, self._metadata.cluster, now)
            if now >= deadline:
                self._core.offset_fetcher.raise_unknown([tp])
                raise self._core.timeout_error(f"the position of {tp} was not found", timeout)
            yield min(deadline - now, span, self._subscriptions.next_retry(now))
        return found

    def _poll_for(self, timeout: float, collect: Callable[[], list[T]]) -> Steps[list[T]]:
        """Return the result of `collect` as soon as it contains data; an empty one after the timeout.

        Also returns an empty result when positions have moved past offsets without records (as in Java, KAFKA-12980). A
        caller that reads up to a certain offset may have reached it, although there is no record.
        """
        if self._subscriptions.type is SubscriptionType.NONE:
            raise IllegalStateError("nothing is assigned to this consumer; call subscribe() or assign() first")
        now = self._clock.monotonic()
        deadline = now + checked_timeout(timeout)
        self.sensors.start_poll(now)
        if self._core.events.active:
            self._publish_poll()
        is_late = False
        while True:
            self._client.maybe_trigger_wakeup()
            span = min(self._maintain(), self._core.statistics.report_if_due(now, self._take_metrics))
            listening = self._core.coordinator is not None and self._core.coordinator.is_listener_running
            found = [] if listening else collect()
            if found or is_late or self._fetcher.take_skipped():
                if not found:
                    self._check_open()  # a listener may have unsubscribed
                    self.sensors.end_poll(self._clock.monotonic())
                    return found
                self._waiting_since = None
                self.sensors.end_poll(self._clock.monotonic())
                return found
            if not listening:
                span = min(span, self._ensure_positions())
                self._fetcher.send_fetches()
            now = self._clock.monotonic()
            self._raise_if_unreachable(now)
            yield min(deadline - now, span, self._subscriptions.next_retry(now))
            self._check_open()
            now = self._clock.monotonic()
            is_late = now >= deadline

    def _take_metrics(self) -> ClientMetrics:
        return take_metrics(self._core)

    def _check_open(self) -> None:
        """Raise if another task closed or unsubscribed the consumer during this wait."""
        if self._core.closed:
            raise IllegalStateError("the consumer was closed while it was polled")
        if self._subscriptions.type is SubscriptionType.NONE:
            raise IllegalStateError("the consumer was unsubscribed while it was polled")

    def _publish_poll(self) -> None:
        if self._core.coordinator is not None:
            gap = self._core.coordinator.heartbeat.poll_gap(self._clock.monotonic())
            self._core.events.publish_kind(POLLED, gap * 1000 if gap < FOREVER else 0.0)

    def _collect_records(self) -> list[RecordSlice]:
        slices = self._fetcher.collect_fetch(self._core.config.max_poll_records)
        if slices and self._fetcher.send_fetches():
            self._client.transmit_sends()
        return slices

    def _maintain(self) -> float:
        """Do the work of group membership and metadata changes. Return the seconds until the next call."""
        # A new assignment is checked too: it stores the current topic ids, by which a later recreation is detected.
        state = (self._metadata.version, self._subscriptions.assignments)
        if state != self._handled:
            self._handled = state
            self._reset_recreated_topics()
            self._report_missing_partitions()
        coordinator = self._core.coordinator
        if coordinator is None:
            return FOREVER
        now = self._clock.monotonic()
        coordinator.poll(now)
        return coordinator.wait_span(now)

    def _reset_recreated_topics(self) -> None:
        recreated = self._subscriptions.reset_recreated_topics(self._metadata.cluster)
        if recreated:
            partitions = ", ".join(map(str, recreated))
            LOG.warning(
                "[%s] topic was recreated; positions are reset by auto.offset.reset partitions=%s",
                self._core.client_id,
                partitions,
            )
            self._fetcher.clear_buffered(recreated)

    def _report_missing_partitions(self) -> None:
        """Log a warning for assigned partitions that do not exist. The consumer continues to wait for them."""
        now = self._clock.monotonic()
        for tp in self._subscriptions.assigned():
            self._missing.check_partition(tp, self._metadata.cluster, now)

    def _ensure_positions(self) -> float:
        """Start lookups of missing positions. Return the seconds until the next call.

        Raises OffsetOutOfRangeError for a partition without a position and without a committed offset if
        `auto.offset.reset` is none.
        """
        coordinator = self._core.coordinator
        span = FOREVER if coordinator is None else coordinator.committed.refresh()
        lost = self._subscriptions.find_lost()
        if lost:
            raise OffsetOutOfRangeError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"no position for {', '.join(map(str, lost))}, and auto.offset.reset = none: call seek() first",
            )
        self._core.offset_fetcher.reset_positions()
        return span

    def _raise_if_unreachable(self, now: float) -> None:
        """Raise an error if no broker was reached within `default.api.timeout.ms`."""
        if self._metadata.version:
            return
        self._waiting_since = self._waiting_since or now
        patience = self._core.config.default_api_timeout_ms
        if now - self._waiting_since >= patience / 1000:
            raise self._client.client.unavailable_error(patience, "default.api.timeout.ms")
