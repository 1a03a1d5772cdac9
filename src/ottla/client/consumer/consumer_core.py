"""What is inside a consumer, whether its caller blocks or awaits: the parts, and how they end together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from ottla.client.consumer.config import read_consumer_settings
from ottla.client.consumer.group.consumer_coordinator import ConsumerCoordinator
from ottla.client.consumer.interceptors import ConsumerInterceptors
from ottla.client.consumer.parts import assemble
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

CLOSE_SECONDS = 30.0
"""How long `close` may take unless it is told."""
INTERRUPTED = "an exception ended a call of this consumer, and its connections with it"
NO_GROUP = (
    "group.id is not set: {} needs the name of a consumer group; set it, or use assign() and keep offsets yourself"
)


class ConsumerCore:
    """The parts of one consumer."""

    def __init__(self, config: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> None:
        warn_if_slow(decoder)
        self.config = read_consumer_settings(config, keywords)
        self.client_id = self.config.client_id or consumer_client_id(
            self.config.group_id, self.config.group_instance_id
        )
        self.clock = SystemClock()
        self.closed = False
        self.on_closed: Callable[[], None] = nothing
        self.guard = SingleThread("consumer")
        interceptors = ConsumerInterceptors(self.config.interceptor_classes)
        self.parts = parts = assemble(self.config, self.client_id, self.clock)
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
        heard = Registry(*windows, self.clock.monotonic())  # of the threads that hear of events
        self.group_sensors = GroupSensors(heard, self.clock.monotonic)
        if interceptors and self.coordinator is not None:
            self.coordinator.commits.on_committed = interceptors.on_commit
        if self.coordinator is not None:
            for sensor in (self.coordinator.commits.latency, *self.coordinator.listener_times.values()):
                self.client.client.sensors.registry.add(sensor)
            self.events.hear_what_is_rare(self.group_sensors.hear)
        if interceptors.hears_events:
            self.events.hear_what_is_rare(interceptors.on_event)

    def open(self) -> SingleThread:
        """The guard of a method that a closed consumer does not have."""
        if self.closed:
            raise IllegalStateError("the consumer is closed; make a new one")
        if self.guard.is_broken or self.client.is_broken:
            self.recover()
        return self.guard

    def recover(self) -> None:
        """Make the consumer usable again after an exception that may have ended a call anywhere.

        A signal handler may raise between any two bytecodes, and no code could put right all that is half done then. So
        nothing of what was under way is kept: connections are made again, requests are sent again, what was buffered is
        fetched again. Positions, the membership and commits that were made stay. An exception that ended the wait for
        the network, where a consumer mostly is, has left nothing half done, and costs nothing.

        Safe to be interrupted: the next call begins again.
        """
        if self.client.is_broken or not self.client.client.is_waiting:
            self.subscriptions.recover()
            self.client.reset(INTERRUPTED)
            self.fetcher.reset()
            if self.coordinator is not None:
                self.coordinator.reset(KafkaError(ErrorCode.NETWORK_EXCEPTION, INTERRUPTED))
        self.guard.is_broken = False

    def group(self, what: str) -> ConsumerCoordinator:
        """Where the group is spoken to; an error for `what` where there is no group."""
        if self.coordinator is None:
            raise InvalidGroupIdError(ErrorCode.INVALID_GROUP_ID, NO_GROUP.format(what))
        return self.coordinator

    def patience(self, timeout: float | None) -> float:
        """The seconds a call may take: its own timeout, or else `default.api.timeout.ms`."""
        return self.config.default_api_timeout_ms / 1000 if timeout is None else checked_timeout(timeout)

    def late(self, what: str, timeout: float | None) -> KafkaTimeoutError:
        """The error of a call that took longer."""
        span = self.patience(timeout)
        if not self.metadata.version:
            return self.client.client.unavailable(span * 1000, "default.api.timeout.ms, or the call's own timeout")
        return KafkaTimeoutError(f"{what} within {span:g} s: {self.client.client.trouble()}")

    def labels(self) -> dict[str, str]:
        """Who this is, by the names that KIP-714 gives to it."""
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
        """The id under which the numbers are pushed."""
        return self.client.client.telemetry.client_instance_id(self.client.client, self.patience(timeout))

    def unsubscribe(self) -> Steps[None]:
        """Give all partitions up, and leave the group."""
        try:
            if self.coordinator is not None and self.subscriptions.by_group:
                yield from self.coordinator.leave()
        finally:
            self.subscriptions.take_back()
            self.fetcher.clear_buffered(list(self.subscriptions.assigned()))
            self.subscriptions.unsubscribe()
            self.metadata.want_only((), self.clock.monotonic())

    def close(self, timeout: float | None) -> Steps[None]:
        """Commit if that is automatic, leave the group, end the fetch sessions and close all connections."""
        if timeout is None:
            timeout = INTERRUPTED_SECONDS if self.guard.interrupted else CLOSE_SECONDS
        deadline = ClosingDeadline(self.clock.monotonic() + checked_timeout(timeout), self.clock)
        try:
            if self.coordinator is not None and not self.client.client.closed:
                yield from self._leave(self.coordinator, deadline)
            yield from self.client.client.telemetry.terminate(self.client.client, deadline.at)
        finally:
            self.on_closed()
            self.fetcher.end_sessions()
            self.client.close()
            self.interceptors.close()
            self.closed = True  # last: where an exception comes before it, another call of close goes on

    def _leave(self, coordinator: ConsumerCoordinator, deadline: ClosingDeadline) -> Steps[None]:
        """Go from the group, and where Ctrl-C struck in the middle, between any two lines, do it again: or the others would wait for a session's end."""
        try:
            with deadline.hurried():
                yield from coordinator.close(deadline)
        except KeyboardInterrupt:
            with deadline.hurried():
                yield from coordinator.close(deadline)
            raise


def nothing() -> None:
    """Nobody wants to hear of the end."""
