"""The core of a share consumer, blocking or asyncio: its components, `poll`, commits, recovery and close."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any
from uuid import UUID

from ottla.client.consumer.networks import Networks
from ottla.client.consumer.records import RecordSlice
from ottla.client.consumer.single_thread import SingleThread
from ottla.client.interface.arguments import checked_timeout
from ottla.client.interface.identity import next_client_id
from ottla.client.metadata.metadata import Metadata
from ottla.client.metadata.metadata_snapshot import REFUSED_TOPIC
from ottla.client.metrics.call_sensors import CallSensors
from ottla.client.metrics.client_metrics import ClientMetrics
from ottla.client.metrics.descriptions import SHARE_CALLS
from ottla.client.metrics.fetch_sensors import PollSensors
from ottla.client.metrics.group_sensors import GroupSensors
from ottla.client.metrics.registry import Registry
from ottla.client.metrics.statistics import Statistics
from ottla.client.network.bootstrap import bootstrap_nodes
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import INTERRUPTED_SECONDS, ClosingDeadline
from ottla.client.runtime.steps import Steps
from ottla.client.share.config import read_share_consumer_settings
from ottla.client.share.share_consumer_coordinator import ShareConsumerCoordinator
from ottla.client.share.share_fetcher import ShareFetcher
from ottla.client.share.state.acknowledgements import AcknowledgeResult, AcknowledgeType, ShareTopicPartition
from ottla.client.share.state.delivered_records import DeliveredRecords
from ottla.clock import SystemClock
from ottla.compiled import warn_if_slow
from ottla.errors import ErrorCode, IllegalStateError, InvalidGroupIdError, KafkaError, error_for, topic_asked
from ottla.model import TopicPartition
from ottla.records import decoder
from ottla.trace import EventStream

CLOSE_SECONDS = 30.0
"""The default timeout of `close` in seconds."""
INTERRUPTED = "connections closed: an exception interrupted a call of this consumer"
NO_GROUP = "group.id is not set: a share consumer needs the name of its share group"
IN_CALLBACK = (
    "a method of the consumer was called in its acknowledgement commit callback: call it after poll has returned"
)
NOT_SUBSCRIBED = "this consumer is not subscribed; call subscribe() first"
ONLY_EXPLICIT = "{} needs share.acknowledgement.mode=explicit; now it is implicit"
TIMED_OUT = "no result within {:g} s; the acknowledgements are still being sent"
CommitResults = dict[TopicPartition, Exception | None]
"""The result of the acknowledgements of each partition: None if they have succeeded."""
CommitCallback = Callable[[dict[TopicPartition, set[int]], Exception | None], Any]


class PendingCommit:
    """A call of `commit` and the results that have arrived for it."""

    def __init__(self, partitions: list[TopicPartition]) -> None:
        self._open = partitions
        """One entry for each acknowledgement without a result."""
        self.results: CommitResults = {}

    def record(self, result: AcknowledgeResult) -> None:
        tp = result.sent.partition.tp
        self._open.remove(tp)
        self.results[tp] = result.error or self.results.get(tp)

    @property
    def is_done(self) -> bool:
        return not self._open

    def time_out(self, error: Exception) -> None:
        """Complete what has no result with an error."""
        self.results.update(dict.fromkeys(self._open, error))


class ShareConsumerCore:
    """The components of one share consumer."""

    def __init__(self, config: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> None:
        warn_if_slow(decoder)
        self.config = config_ = read_share_consumer_settings(config, keywords)
        if config_.group_id is None:
            raise InvalidGroupIdError(ErrorCode.INVALID_GROUP_ID, NO_GROUP)
        self.client_id = config_.client_id or next_client_id(f"consumer-{config_.group_id}")
        self.clock = SystemClock()
        self.closed = False
        self.on_closed: Callable[[], None] = do_nothing
        self.guard = SingleThread("consumer")
        self.events = EventStream(self.clock)
        self.is_explicit = config_.share_acknowledgement_mode == "explicit"
        backoff = ExponentialBackoff(config_.retry_backoff_ms, config_.retry_backoff_max_ms, Random())
        self.metadata = Metadata(
            bootstrap_nodes(config_.bootstrap_servers, config_.client_dns_lookup, protocol=config_.security_protocol),
            max_age_ms=config_.metadata_max_age_ms,
            backoff=backoff,
            allow_auto_topic_creation=config_.allow_auto_create_topics,
        )
        networks = Networks(config_, self.client_id, self.metadata, self.clock, fetch_max_bytes=config_.fetch_max_bytes)
        self.client = networks.make_user_client()
        self.coordinator = ShareConsumerCoordinator(
            config_, self.client_id, self.client, backoff, networks.make_heartbeat_client, self.events
        )
        self.client.client.on_disowned = self.coordinator.disown
        self.fetcher = ShareFetcher(
            config_, self.client, backoff, lambda: self.coordinator.member_id, self.coordinator.log
        )
        self.delivered = DeliveredRecords()
        registry = self.client.client.sensors.registry
        self.polls = PollSensors(registry)
        self.calls = CallSensors(registry, self.clock.monotonic, SHARE_CALLS)
        self.statistics = Statistics(config_.statistics_interval_ms, config_.on_statistics, self.clock.monotonic())
        windows = config_.metrics_num_samples, config_.metrics_sample_window_ms
        self.group_sensors = GroupSensors(Registry(*windows, self.clock.monotonic()), self.clock.monotonic)
        self.events.add_rare_listener(self.group_sensors.record_event)
        self.acknowledgements, self.failures = registry.sensor(), registry.sensor()
        """Acknowledged records, and those with an acknowledgement that failed."""
        self.topics: frozenset[str] = frozenset()
        self.callback: CommitCallback | None = None
        self._uncalled: list[AcknowledgeResult] = []
        """Results for which the callback was not called yet."""
        self._is_in_callback = False
        self._waiting_since: float | None = None
        self._checked_version = -1
        self._assigned: tuple[frozenset[tuple[UUID, int]], Any, list[ShareTopicPartition]] | None = None
        """The last result of `assigned`, with the assignment and the metadata from which it was made."""

    def open(self) -> SingleThread:
        """Return the guard for a method. Raises IllegalStateError if the consumer is closed."""
        if self.closed:
            raise IllegalStateError("the consumer is closed; make a new one")
        if self._is_in_callback:
            raise IllegalStateError(IN_CALLBACK)
        if self.guard.is_broken or self.client.is_broken:
            self.recover()
        return self.guard

    def recover(self) -> None:
        """Make the consumer usable again after an exception that may have interrupted a call anywhere.

        Connections are opened again in new share sessions, so the broker releases what was acquired. Acknowledgements
        without a result fail. The membership is kept.
        """
        if self.client.is_broken or not self.client.client.is_waiting:
            self.client.reset(INTERRUPTED)
            self.fetcher.reset(KafkaError(ErrorCode.NETWORK_EXCEPTION, INTERRUPTED))
        self.guard.is_broken = False

    def timeout_seconds(self, timeout: float | None) -> float:
        """Return the timeout of a call in seconds: its own, or `default.api.timeout.ms`."""
        return self.config.default_api_timeout_ms / 1000 if timeout is None else checked_timeout(timeout)

    def labels(self) -> dict[str, str]:
        """Return the labels of this client, with the names of KIP-714."""
        labels = {
            "client_rack": self.config.client_rack,
            "group_id": self.config.group_id or "",
            "group_member_id": self.coordinator.member_id,
        }
        return {name: value for name, value in labels.items() if value}

    def client_instance_id(self, timeout: float | None) -> Steps[UUID]:
        """Return the id under which metrics are pushed."""
        return self.client.client.telemetry.client_instance_id(self.client.client, self.timeout_seconds(timeout))

    def subscribe(self, topics: list[str]) -> None:
        """Subscribe to these topics."""
        self.topics = frozenset(topics)
        self.metadata.track_only(self.topics, self.clock.monotonic())
        self.coordinator.set_subscription(self.topics)

    def poll(self, timeout: float) -> Steps[list[RecordSlice]]:
        """Return acquired records, waiting for them until the timeout."""
        now = self.clock.monotonic()
        deadline = now + checked_timeout(timeout)
        if not self.topics:
            raise IllegalStateError(NOT_SUBSCRIBED)
        self._handle_results()
        self.call_back()
        self.polls.start_poll(now)
        try:
            if not self.delivered.is_returned:  # the last poll was interrupted after it had collected these records
                return self.delivered.last_slices
            self._acknowledge_last_poll()
            return (yield from self._poll_until(deadline))
        finally:
            self.polls.end_poll(self.clock.monotonic())

    def acquire(self, timeout: float, *, fetches: bool) -> Steps[list[RecordSlice]]:
        """Return further acquired records, although earlier ones may not be acknowledged."""
        if not self.is_explicit:
            raise IllegalStateError(ONLY_EXPLICIT.format("acquire()"))
        now = self.clock.monotonic()
        deadline = now + checked_timeout(timeout)
        if not self.topics:
            raise IllegalStateError(NOT_SUBSCRIBED)
        self._handle_results()
        self.call_back()
        self.polls.start_poll(now)
        try:
            if not self.delivered.is_returned:  # the last call was interrupted after it had collected these records
                return self.delivered.last_slices
            return (yield from self._poll_until(deadline, holds=True, fetches=fetches))
        finally:
            self.polls.end_poll(self.clock.monotonic())

    def commit(self, timeout: float | None) -> Steps[CommitResults]:
        """Send the acknowledgements and return the result for each partition."""
        span = self.timeout_seconds(timeout)
        deadline = self.clock.monotonic() + span
        self._handle_results()
        self.call_back()
        if not self.is_explicit:
            self.delivered.acknowledge_all(AcknowledgeType.ACCEPT)
        commit = self._queue(deadline, waits=True)
        assert commit is not None
        while not commit.is_done:
            now = self.clock.monotonic()
            if now >= deadline:
                commit.time_out(KafkaError(ErrorCode.REQUEST_TIMED_OUT, TIMED_OUT.format(span)))
                break
            self.fetcher.send_acknowledgements()
            yield min(deadline - now, self.fetcher.time_to_retry())
            self._handle_results()
        self.call_back()
        return commit.results

    def commit_async(self) -> None:
        """Send the acknowledgements without waiting for the results."""
        self._handle_results()
        self.call_back()
        if not self.is_explicit:
            self.delivered.acknowledge_all(AcknowledgeType.ACCEPT)
        self._queue(self.clock.monotonic() + self.timeout_seconds(None))
        self.fetcher.send_acknowledgements()
        self._handle_results()

    def acknowledge(self, tp: TopicPartition, offset: int, kind: AcknowledgeType) -> None:
        """Acknowledge one record."""
        if not self.is_explicit:
            raise IllegalStateError(ONLY_EXPLICIT.format("acknowledge()"))
        self.delivered.acknowledge(tp, offset, kind)

    def unsubscribe(self) -> Steps[None]:
        """Send the acknowledgements, release all other records, and leave the group."""
        try:
            yield from self._close_sessions(self.clock.monotonic() + self.timeout_seconds(None))
        finally:
            self.topics = frozenset()
            self.delivered.clear()
            self.fetcher.drop_sessions()
            self.coordinator.leave()
            self.metadata.track_only((), self.clock.monotonic())
        self.call_back()

    def close(self, timeout: float | None) -> Steps[None]:
        """Send the acknowledgements, release all other records, leave the group and close all connections."""
        if timeout is None:
            timeout = INTERRUPTED_SECONDS if self.guard.interrupted else CLOSE_SECONDS
        deadline = ClosingDeadline(self.clock.monotonic() + checked_timeout(timeout), self.clock)
        try:
            if not self.client.client.closed:
                yield from self._release_and_leave(deadline)
            yield from self.client.client.telemetry.terminate(self.client.client, deadline.at)
            self.call_back()
        finally:
            self.on_closed()
            self.client.close()
            self.closed = True  # last: after an exception before this line, another call of close continues

    def call_back(self) -> None:
        """Call the callback for the results that have arrived. Its exceptions are raised here."""
        results, self._uncalled = self._uncalled, []
        if self.callback is None:
            return
        self._is_in_callback = True
        try:
            while results:
                result = results.pop(0)
                self.callback({result.sent.partition.tp: set(result.sent.types)}, result.error)
        finally:
            self._is_in_callback = False
            self._uncalled[:0] = results

    def assigned(self) -> list[ShareTopicPartition]:
        """Keep the membership and return the assigned partitions with known topics."""
        cluster = self.metadata.cluster
        assignment = self.coordinator.poll(self.topics, self.clock.monotonic())
        last = self._assigned
        if last is not None and last[0] is assignment and last[1] is cluster:
            return last[2]
        found = []
        for topic_id, number in sorted(assignment):
            name = cluster.names.get(topic_id)
            if name is None:
                self.metadata.request_update()
            else:
                found.append(ShareTopicPartition(topic_id, name, number))
        self._assigned = (assignment, cluster, found) if len(found) == len(assignment) else None
        return found

    def take_metrics(self) -> ClientMetrics:
        """Return the current metrics."""
        from ottla.client.share.metrics import take_metrics

        return take_metrics(self)

    def _poll_until(self, deadline: float, *, holds: bool = False, fetches: bool = True) -> Steps[list[RecordSlice]]:
        """Return records within the deadline. With `holds` renewed records stay held and are not returned again."""
        self._queue(self.clock.monotonic() + self.timeout_seconds(None))
        if self.delivered.is_renewing or self.fetcher.are_acknowledgements_late:
            yield 0.0  # receives the response to an earlier request: one at a time is in flight
            self.fetcher.send_acknowledgements()
        is_late = False
        while True:
            self.client.maybe_trigger_wakeup()
            self._check_topics()
            assigned = self.assigned()
            self.fetcher.raise_failure()
            self._handle_results()
            if holds:
                self.delivered.hold_renewed()
            found = self._collect(holds=holds)
            if found:
                self._waiting_since = None
                return found
            if is_late:
                return []
            now = self.clock.monotonic()
            span = min(self.coordinator.wait_span(), self.statistics.report_if_due(now, self.take_metrics))
            if not fetches or (self.delivered.is_renewing and not holds):
                self.fetcher.send_acknowledgements()
                span = min(span, self.fetcher.time_to_retry())
            else:
                span = min(span, self.fetcher.send_fetches(assigned))
            self._raise_if_unreachable(now)
            yield min(deadline - now, span)
            if self.closed or not self.topics:
                raise IllegalStateError("the consumer was closed or unsubscribed while it was polled")
            is_late = self.clock.monotonic() >= deadline  # after the first round, so that also poll(0) fetches

    def _collect(self, *, holds: bool) -> list[RecordSlice]:
        """Return renewed records, or else further acquired records; they are held by the user from now on."""
        if self.delivered.is_renewing and not holds:
            return []
        slices = self.delivered.take_renewed()
        if not slices:
            for partition, node_id, generation, portion in self.fetcher.collect(self.config.max_poll_records):
                self.delivered.add(partition, node_id, generation, portion.slices, portion.automatic, portion.failed)
                slices.extend(portion.slices)
                if portion.error is not None:
                    raise portion.error
            if not slices:
                self._queue(self.clock.monotonic() + self.timeout_seconds(None))  # gaps
        if slices:
            self.delivered.last_slices, self.delivered.is_returned = slices, False
        return slices

    def _acknowledge_last_poll(self) -> None:
        if self.is_explicit:
            self.delivered.require_acknowledged()
        else:
            self.delivered.acknowledge_all(AcknowledgeType.ACCEPT)

    def _queue(self, deadline: float, *, waits: bool = False) -> PendingCommit | None:
        """Pass the acknowledgements to the fetcher. Return the pending commit if the caller waits for the results."""
        taken = self.delivered.take(deadline)
        commit = None
        if waits:
            commit = PendingCommit([each.partition.tp for each, _ in taken])
            taken = [(each._replace(commit=commit), generation) for each, generation in taken]
        self.fetcher.add(taken)
        self._handle_results()
        return commit

    def _handle_results(self) -> None:
        for result in self.fetcher.take_results():
            self.delivered.handle_result(result)
            self.acknowledgements.record(len(result.sent.types))
            if result.error is not None:
                self.failures.record(len(result.sent.types))
            if result.sent.commit is not None:
                result.sent.commit.record(result)
            if self.callback is not None:
                self._uncalled.append(result)

    def _check_topics(self) -> None:
        """Raise the error of a subscribed topic that does not exist for this client."""
        if self.metadata.version == self._checked_version:
            return
        self._checked_version = self.metadata.version
        for topic in self.topics:
            if (code := self.metadata.cluster.errors.get(topic, 0)) in REFUSED_TOPIC:
                self._checked_version = -1
                raise error_for(code, f"{topic_asked(code, topic)}, which this consumer subscribes to")

    def _raise_if_unreachable(self, now: float) -> None:
        """Raise an error if no broker was reached within `default.api.timeout.ms`."""
        if self.metadata.version:
            return
        self._waiting_since = self._waiting_since or now
        patience = self.config.default_api_timeout_ms
        if now - self._waiting_since >= patience / 1000:
            raise self.client.client.unavailable_error(patience, "default.api.timeout.ms")

    def _close_sessions(self, deadline: float) -> Steps[None]:
        """Send the acknowledgements and close the share sessions, so that the broker releases all other records."""
        self._handle_results()
        self._queue(deadline)
        while not self.fetcher.close_sessions():
            now = self.clock.monotonic()
            if now >= deadline:
                break
            yield deadline - now
        self._handle_results()

    def _release_and_leave(self, deadline: ClosingDeadline) -> Steps[None]:
        """Release the records and leave the group, and repeat the latter after Ctrl-C, which may interrupt it anywhere."""
        try:
            with deadline.shorten_on_interrupt():
                yield from self._close_sessions(deadline.at)
        finally:
            try:
                with deadline.shorten_on_interrupt():
                    yield from self.coordinator.close(deadline)
            except KeyboardInterrupt:
                with deadline.shorten_on_interrupt():
                    yield from self.coordinator.close(deadline)
                raise


def do_nothing() -> None:
    """Do nothing: the default of `on_closed`."""
