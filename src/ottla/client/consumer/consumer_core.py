"""The core of a consumer, blocking or asyncio: its components, recovery and close."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ottla.client.consumer.config import read_consumer_settings
from ottla.client.consumer.interceptors import ConsumerInterceptors
from ottla.client.consumer.parts import assemble_parts
from ottla.client.consumer.single_thread import SingleThread
from ottla.client.interface.arguments import checked_timeout
from ottla.client.interface.identity import consumer_client_id
from ottla.client.metrics.call_sensors import CallSensors
from ottla.client.metrics.descriptions import CONSUMER_CALLS
from ottla.client.metrics.fetch_sensors import PollSensors
from ottla.client.metrics.group_sensors import GroupSensors
from ottla.client.metrics.registry import Registry
from ottla.client.metrics.statistics import Statistics
from ottla.client.runtime.deadline import INTERRUPTED_SECONDS, ClosingDeadline
from ottla.client.runtime.steps import Steps
from ottla.clock import SystemClock
from ottla.compiled import warn_if_slow
from ottla.errors import ErrorCode, IllegalStateError, InvalidGroupIdError, KafkaError, KafkaTimeoutError
from ottla.records import decoder

if TYPE_CHECKING:
    from ottla.client.consumer.group.consumer_coordinator import ConsumerCoordinator

CLOSE_SECONDS = 30.0
"""The default timeout of `close` in seconds."""
INTERRUPTED = "connections closed: an exception interrupted a call of this consumer"
NO_GROUP = "group.id is not set: {} needs a consumer group; set it, or use assign() and store offsets yourself"


class ConsumerCore:
    """The components of one consumer."""

    def __init__(self, config: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> None:
        warn_if_slow(decoder)
        self.config = read_consumer_settings(config, keywords)
        self.client_id = self.config.client_id or consumer_client_id(
            self.config.group_id, self.config.group_instance_id
        )
        self.clock = SystemClock()
        self.closed = False
        self.on_closed: Callable[[], None] = do_nothing
        self.guard = SingleThread("consumer")
        interceptors = ConsumerInterceptors(self.config.interceptor_classes)
        self.parts = parts = assemble_parts(self.config, self.client_id, self.clock)
        self.events, self.metadata, self.subscriptions = parts.events, parts.metadata, parts.subscriptions
        self.client, self.fetcher, self.offset_fetcher = parts.client, parts.fetcher, parts.offset_fetcher
        self.topics, self.coordinator = parts.topics, parts.coordinator
        self.interceptors = interceptors
        self.polls = PollSensors(self.client.client.sensors.registry)
        self.calls = CallSensors(self.client.client.sensors.registry, self.clock.monotonic, CONSUMER_CALLS)
        self.statistics = Statistics(
            self.config.statistics_interval_ms, self.config.on_statistics, self.clock.monotonic()
        )
        windows = self.config.metrics_num_samples, self.config.metrics_sample_window_ms
        event_registry = Registry(*windows, self.clock.monotonic())  # used by all threads that record events
        self.group_sensors = GroupSensors(event_registry, self.clock.monotonic)
        if interceptors and self.coordinator is not None:
            self.coordinator.commits.on_committed = interceptors.on_commit
        if self.coordinator is not None:
            for sensor in (self.coordinator.commits.latency, *self.coordinator.listener_times.values()):
                self.client.client.sensors.registry.add(sensor)
            self.events.add_rare_listener(self.group_sensors.record_event)
        if interceptors.hears_events:
            self.events.add_rare_listener(interceptors.on_event)

    def open(self) -> SingleThread:
        """Return the guard for a method. Raises IllegalStateError if the consumer is closed."""
        if self.closed:
            raise IllegalStateError("the consumer is closed; make a new one")
        if self.guard.is_broken or self.client.is_broken:
            self.recover()
        return self.guard

    def recover(self) -> None:
        """Make the consumer usable again after an exception that may have interrupted a call anywhere.

        A signal handler may raise between any two bytecodes, so an operation in progress may be incomplete in any way.
        Therefore nothing in progress is kept: connections are opened again, requests are sent again, and buffered data
        is fetched again. Positions, the membership and finished commits are kept. If the exception occurred during the
        wait for the network, where a consumer spends most of its time, everything is kept.

        May be interrupted: the next call starts again.
        """
        if self.client.is_broken or not self.client.client.is_waiting:
            self.subscriptions.recover()
            self.client.reset(INTERRUPTED)
            self.fetcher.reset()
            if self.coordinator is not None:
                self.coordinator.reset(KafkaError(ErrorCode.NETWORK_EXCEPTION, INTERRUPTED))
        self.guard.is_broken = False

    def require_group(self, what: str) -> ConsumerCoordinator:
        """Return the coordinator. Raises InvalidGroupIdError, which names `what`, if there is no group."""
        if self.coordinator is None:
            raise InvalidGroupIdError(ErrorCode.INVALID_GROUP_ID, NO_GROUP.format(what))
        return self.coordinator

    def timeout_seconds(self, timeout: float | None) -> float:
        """Return the timeout of a call in seconds: its own, or `default.api.timeout.ms`."""
        return self.config.default_api_timeout_ms / 1000 if timeout is None else checked_timeout(timeout)

    def timeout_error(self, what: str, timeout: float | None) -> KafkaTimeoutError:
        """Return the error of a call that timed out."""
        span = self.timeout_seconds(timeout)
        if not self.metadata.version:
            return self.client.client.unavailable_error(
                span * 1000, "default.api.timeout.ms, or the call's own timeout"
            )
        return KafkaTimeoutError(f"{what} within {span:g} s: {self.client.client.describe_trouble()}")

    def labels(self) -> dict[str, str]:
        """Return the labels of this client, with the names of KIP-714."""
        config = self.config
        member_id = None if self.coordinator is None else self.coordinator.group_metadata().member_id
        labels = {
            "client_rack": config.client_rack,
            "group_id": config.group_id,
            "group_instance_id": config.group_instance_id,
            "group_member_id": member_id,
        }
        return {name: value for name, value in labels.items() if value}

    def client_instance_id(self, timeout: float | None) -> Steps[UUID]:
        """Return the id under which metrics are pushed."""
        return self.client.client.telemetry.client_instance_id(self.client.client, self.timeout_seconds(timeout))

    def unsubscribe(self) -> Steps[None]:
        """Give up all partitions and leave the group."""
        try:
            if self.coordinator is not None and self.subscriptions.is_group_managed:
                yield from self.coordinator.leave()
        finally:
            self.subscriptions.rewind_unyielded()
            self.fetcher.clear_buffered(list(self.subscriptions.assigned()))
            self.subscriptions.unsubscribe()
            self.metadata.track_only((), self.clock.monotonic())

    def close(self, timeout: float | None) -> Steps[None]:
        """Commit if auto-commit is enabled, leave the group, close the fetch sessions and all connections."""
        if timeout is None:
            timeout = INTERRUPTED_SECONDS if self.guard.interrupted else CLOSE_SECONDS
        deadline = ClosingDeadline(self.clock.monotonic() + checked_timeout(timeout), self.clock)
        try:
            if self.coordinator is not None and not self.client.client.closed:
                yield from self._leave(self.coordinator, deadline)
            yield from self.client.client.telemetry.terminate(self.client.client, deadline.at)
        finally:
            self.on_closed()
            self.fetcher.close_sessions()
            self.client.close()
            self.interceptors.close()
            self.closed = True  # last: after an exception before this line, another call of close continues

    def _leave(self, coordinator: ConsumerCoordinator, deadline: ClosingDeadline) -> Steps[None]:
        """Leave the group. If Ctrl-C interrupts this, repeat it before KeyboardInterrupt is raised again.

        Without the leave request the other members would wait for the session to expire.
        """
        try:
            with deadline.shorten_on_interrupt():
                yield from coordinator.close(deadline)
        except KeyboardInterrupt:
            with deadline.shorten_on_interrupt():
                yield from coordinator.close(deadline)
            raise


def do_nothing() -> None:
    """Do nothing: the default of `on_closed`."""
