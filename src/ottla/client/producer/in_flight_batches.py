"""Batches that were sent and have no result, and how each gets one.

A batch is added when it is sent in a request. Its response, a lost connection, or the delivery timeout completes it:
with an offset, with an error, or by returning it to its queue. A response that arrives after `delivery.timeout.ms`
finds the batch removed and has no effect.

A leader that is disconnected from its followers may not respond for `request.timeout.ms`, while another broker is
already the leader. A batch with sequence numbers is then sent to the new leader at once (`follow_leaders`), which
detects a duplicate by its numbers. A later response of the old leader has no effect.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.client.metrics.producer_sensors import ProducerSensors
from ottla.client.network.client_request import ClientResponse
from ottla.client.network.network_client import NetworkClient
from ottla.client.producer import batch_events
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.events import BatchSplit
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.record_accumulator import RecordAccumulator
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.producer.unobserved_failures import UnobservedFailures
from ottla.errors import (
    AuthenticationError,
    ErrorCode,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    TransactionAbortedError,
    error_for,
)
from ottla.model import FOREVER, Node, TopicPartition
from ottla.trace import EventStream

LOG = logging.getLogger(__name__)
RETRIES = logging.getLogger("ottla.client.producer.retries")
"""A separate logger, so that a command can show only these warnings."""
LONG_RETRY_SECONDS = 2.0
"""A warning is logged if no record was written to a partition for this many seconds despite retries."""

LEADER_MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors after which another broker may be the leader."""


class SentBatches(NamedTuple):
    """The batches of one Produce request."""

    node: int
    batches: list[ProducerBatch]


class InFlightBatches:
    """Batches without a response."""

    def __init__(
        self,
        config: ProducerConfig,
        client: NetworkClient,
        accumulator: RecordAccumulator,
        name: str,
        transactions: TransactionManager | None,
        events: EventStream,
        sensors: ProducerSensors,
    ) -> None:
        self._config = config
        self._client = client
        self._metadata = client.metadata
        self._accumulator = accumulator
        self._name = name
        self._transactions = transactions
        self._events = events
        self._sensors = sensors
        self._in_order = config.max_in_flight_requests_per_connection == 1
        self._batches: dict[ProducerBatch, SentBatches] = {}
        """Each batch with its latest request."""
        self._retry_causes: dict[TopicPartition, tuple[float, Exception]] = {}
        """The time and error of the last retry of each partition, until a batch is written. Later batches wait for the
        same reason.
        """
        self._retrying_since: dict[TopicPartition, float] = {}
        """The time since which no batch of a partition was written despite retries."""
        self._reported: set[int] = set()
        """Error codes that were reported as blocking records for long."""
        self._cluster = self._metadata.cluster
        """The cluster at the last call of `follow_leaders`."""
        self.unobserved = UnobservedFailures()
        """Failures without a callback or a future. Failures in a transaction are raised by its commit instead."""
        self.any_finished = False
        """True if a batch has completed since this was reset."""

    def add(self, node: int, batches: list[ProducerBatch]) -> SentBatches:
        """Add the batches of a request that is sent now.

        If only one request may be in flight, their partitions are muted.
        """
        sent = SentBatches(node, batches)
        for batch in batches:
            self._batches[batch] = sent
            if self._in_order:
                self._accumulator.mute(batch.tp)
        return sent

    def find_unanswered(self, sent: SentBatches) -> list[ProducerBatch]:
        """Return the batches that still wait for this request."""
        return [batch for batch in sent.batches if self._batches.get(batch) is sent]

    def follow_leaders(self, cluster: MetadataSnapshot, now: float) -> None:
        """Queue batches again that have sequence numbers and are in flight to a broker that is no longer their leader."""
        if cluster is self._cluster:
            return
        self._cluster = cluster
        if self._transactions is None:
            return  # without sequence numbers the batch would be stored twice
        for batch, sent in list(self._batches.items()):
            leader = cluster.leader(batch.tp)
            if leader is not None and leader.node_id != sent.node:
                self._send_to_new_leader(
                    batch, f"{batch.tp}: node {leader.node_id} is the leader now, not {sent.node}", now
                )

    def _send_to_new_leader(self, batch: ProducerBatch, reason: str, now: float) -> None:
        error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, reason)
        if self._can_retry(batch, error, now, -1):
            self._remove_batch(batch)
            self._retry_batch(batch, error, now)
            batch.retry_at = now

    def list_batches(self) -> list[ProducerBatch]:
        """Return the batches in flight. Raises RuntimeError if another thread changes them meanwhile."""
        return list(self._batches)

    def fail_all(self, error: Exception) -> None:
        """Fail all batches after a fatal error."""
        for batch in [*self._batches, *self._accumulator.queued_batches()]:
            self._remove_batch(batch)
            self.finish_batch(batch, error)

    def handle_response(
        self, response: ClientResponse, batches: list[ProducerBatch], names: Mapping[UUID, str]
    ) -> None:
        """Handle a response batch by batch. Batches missing in it are retried. `names` maps topic ids to names."""
        message: Any = response.message
        now = response.received
        waiting = {batch.tp: batch for batch in batches}
        moved = self._metadata.update_leaders(
            find_new_leaders(message, names),
            [Node(node.node_id, node.host, node.port, node.rack) for node in message.node_endpoints],
        )
        hurried = [waiting[tp] for tp in moved if tp in waiting]
        for topic in message.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for answer in topic.partition_responses:
                if answer.error_code == ErrorCode.REQUEST_TIMED_OUT:
                    self._client.doubt_broker(
                        response.node_id
                    )  # its followers may not fetch because another broker is the leader
                batch = waiting.pop(TopicPartition(name, answer.index), None)
                if batch is not None:
                    self._complete_by_answer(batch, answer, now)
        for batch in hurried:
            batch.retry_at = now  # the response contains the new leader (KIP-951), so no backoff is needed
        for batch in waiting.values():
            self.complete_batch(
                batch, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "missing in the broker's response"), now
            )

    def _complete_by_answer(self, batch: ProducerBatch, answer: Any, now: float) -> None:
        if answer.error_code == ErrorCode.NONE:
            self.complete_batch(batch, None, now, answer.base_offset, answer.log_append_time_ms)
        elif answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # The batch was stored so long ago that the broker does not know its offset any more.
            self.complete_batch(batch, None, now)
        elif answer.error_code == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1 and batch in self._batches:
            LOG.info("[%s] batch too large, split in two partition=%s records=%d", self._name, batch.tp, batch.count)
            self._remove_batch(batch)
            self._sensors.splits.record(1)
            if self._events.active:
                self._events.publish(BatchSplit(batch.tp, batch.count))
            parts = self._accumulator.split_and_reenqueue(batch)
            if self._transactions is not None:
                self._transactions.sequences.split(batch, parts)
            self._accumulator.finish(batch)
        elif answer.error_code == ErrorCode.INVALID_RECORD and answer.record_errors:
            remarks = {e.batch_index: e.batch_index_error_message or "invalid" for e in answer.record_errors}
            self.complete_batch(batch, remarks, now)
        else:
            error = error_for(answer.error_code, f"{batch.tp}: {answer.error_message or 'rejected'}")
            self.complete_batch(batch, error, now, log_start_offset=answer.log_start_offset)

    def complete_batch(
        self,
        batch: ProducerBatch,
        error: Exception | Mapping[int, str] | None,
        now: float,
        base_offset: int = -1,
        log_append_time: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        """Complete a batch, or queue it again.

        No effect on a batch that was completed before, for example by its timeout.
        """
        if isinstance(error, KafkaError) and error.code in LEADER_MOVED:
            self._metadata.request_update()
        if batch not in self._batches:
            return
        self._remove_batch(batch)
        if self._can_retry(batch, error, now, log_start_offset):
            self._retry_batch(batch, error, now)
            return
        if error is not None:
            # After the last retry, an earlier attempt may have been written.
            self.fail_batch(batch, error, certain=batch.attempts < self._config.retries)
            return
        if self._retrying_since:
            self._report_recovery(batch, now)
        if self._transactions is not None:
            self._transactions.sequences.record_completed(batch, base_offset)
        self.finish_batch(batch, None, base_offset, log_append_time)

    def _retry_batch(self, batch: ProducerBatch, error: Any, now: float) -> None:
        LOG.debug("[%s] batch retried partition=%s error=%s", self._name, batch.tp, error)
        batch.last_error = error if isinstance(error, Exception) else None
        if isinstance(error, KafkaError) and error.code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self._retry_causes[batch.tp] = (
                now,
                error,
            )  # this error only means that an earlier batch must be written first
            self._report_long_retry(batch, error, now)
        self._accumulator.reenqueue(batch, now)
        self._sensors.retried.sensor_for(batch.tp.topic).record(batch.count)
        if self._events.active:
            self._events.publish(batch_events.make_retried(batch, error, now))

    def _report_long_retry(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        """Log one warning per kind of error if a partition accepts no records for long, for example because of a full disk."""
        since = self._retrying_since.setdefault(batch.tp, now)
        if now - since >= LONG_RETRY_SECONDS and error.code not in self._reported:
            self._reported.add(error.code)
            RETRIES.warning(
                "[%s] records are retried without success partition=%s seconds=%.0f delivery.timeout.ms=%d error=%s",
                self._name,
                batch.tp,
                now - since,
                self._config.delivery_timeout_ms,
                error,
            )

    def _report_recovery(self, batch: ProducerBatch, now: float) -> None:
        """Handle that records of the batch's partition are written again."""
        self._retry_causes.pop(batch.tp, None)
        since = self._retrying_since.pop(batch.tp, now)
        if not self._retrying_since and self._reported:
            self._reported.clear()
            RETRIES.info("[%s] records are written again partition=%s seconds=%.0f", self._name, batch.tp, now - since)

    def _can_retry(self, batch: ProducerBatch, error: Any, now: float, log_start_offset: int) -> bool:
        if not isinstance(error, KafkaError) or batch.attempts >= self._config.retries:
            return False
        if self._accumulator.is_expired(batch, now):
            return False
        if self._transactions is None:
            return error.retriable
        return self._transactions.can_retry(batch, error, log_start_offset)

    def fail_batch(self, batch: ProducerBatch, error: Any, *, certain: bool) -> None:
        """Fail a batch. `certain` is True if it was certainly not written."""
        if self._transactions is not None:
            cause = error if isinstance(error, Exception) else batch.result.error_by_remark(None)
            self._transactions.record_batch_failure(batch, cause, certain=certain)
        self.finish_batch(batch, error)

    def _remove_batch(self, batch: ProducerBatch) -> None:
        self._batches.pop(batch, None)
        if self._in_order:
            self._accumulator.unmute(batch.tp)

    def finish_batch(self, batch: ProducerBatch, error: Any, base_offset: int = -1, log_append_time: int = -1) -> None:
        """Complete the result of a batch and release its memory."""
        if error is not None:
            self._sensors.failed.sensor_for(batch.tp.topic).record(batch.count)
        if error is not None and not isinstance(error, TransactionAbortedError):
            LOG.warning(
                "[%s] delivery failed partition=%s records=%d error=%s", self._name, batch.tp, batch.count, error
            )
        if self._events.active:
            batch_events.record_finished(self._events, batch, error, base_offset, self._client.clock.monotonic())
        reported = 0 if batch.result.deliveries is None else len(batch.result.deliveries.callbacks)
        batch.result.complete(base_offset, log_append_time, error)
        self.any_finished = True
        if error is not None and (self._transactions is None or self._transactions.transactional_id is None):
            self.unobserved.record_failure(batch, reported, batch.count)
        self._accumulator.finish(batch)

    def fail_expired(self, now: float) -> None:
        """Fail batches, queued or in flight, after their delivery timeout."""
        late = [batch for batch in self._batches if self._accumulator.is_expired(batch, now)]
        for batch in late:
            self._remove_batch(batch)
        for batch in late:
            self.fail_batch(batch, self._timeout_error(batch, batch.attempts + 1), certain=False)
        for batch in self._accumulator.expired_batches(now):
            self.fail_batch(batch, self._timeout_error(batch, batch.attempts), certain=False)

    def fail_unauthenticated(self, error: AuthenticationError) -> None:
        """Fail batches queued for brokers that reject the login, because waiting would not help."""
        cluster = self._metadata.cluster
        refusing = [node for node in cluster.nodes if self._client.has_failed_login(node)]
        for batch in self._accumulator.batches_led_by(cluster, refusing):
            self.fail_batch(batch, error, certain=False)

    def next_expiry(self) -> float:
        """Return the time of the first delivery timeout."""
        span = self._config.delivery_timeout_ms / 1000
        return min((batch.created + span for batch in self._batches), default=FOREVER)

    def _timeout_error(self, batch: ProducerBatch, sent: int) -> KafkaTimeoutError:
        when, retry_cause = self._retry_causes.get(batch.tp, (-FOREVER, None))
        cause = (retry_cause if when >= batch.created else None) or batch.last_error or self._client.describe_trouble()
        return KafkaTimeoutError(
            f"{batch.count} {'record' if batch.count == 1 else 'records'} for {batch.tp} not delivered within "
            f"delivery.timeout.ms = {self._config.delivery_timeout_ms}, {describe_attempts(sent)}: {cause}"
        )

    def fail_remaining(self) -> None:
        """Fail the remaining batches at a forced close, and log their number."""
        left = self._accumulator.incomplete()
        if left:
            lost = sum(batch.count for batch in left)
            LOG.error(
                "[%s] closed with undelivered records records=%d reason=%s",
                self._name,
                lost,
                self._client.describe_trouble(),
            )
        for batch in left:
            error = IllegalStateError("the producer was closed before the record was delivered")
            if self._events.active:
                batch_events.record_finished(self._events, batch, error, -1, self._client.clock.monotonic())
            batch.result.complete(error=error)
            self._accumulator.finish(batch)
        if self._transactions is not None:
            with self._transactions.lock:
                self._transactions.machine.drop_requests(
                    IllegalStateError("the producer was closed before this was done")
                )


def describe_attempts(sent: int) -> str:
    """Describe the number of attempts."""
    return "never sent" if not sent else "sent once" if sent == 1 else f"sent {sent} times"


def find_new_leaders(message: Any, names: Mapping[UUID, str]) -> dict[TopicPartition, tuple[int, int]]:
    """Return node and epoch of the current leaders in a response of a broker that is not the leader (KIP-951)."""
    return {
        TopicPartition(topic.name or names.get(topic.topic_id, ""), answer.index): (
            answer.current_leader.leader_id,
            answer.current_leader.leader_epoch,
        )
        for topic in message.responses
        for answer in topic.partition_responses
        if answer.error_code and answer.current_leader is not None and answer.current_leader.leader_id >= 0
    }
