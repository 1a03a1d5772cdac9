"""The batches that were sent and have no outcome, and how each comes to one.

A batch is added when it leaves in a request. Its answer, the loss of its connection or the end of its time finds it here and settles it: with an offset,
with an error, or by a place in its queue again. What finds it here no more (an answer that comes after `delivery.timeout.ms`) changes nothing.

A leader that is cut off from its followers may be silent for as long as `request.timeout.ms`, while another leads by now. What has numbers is sent
to that one at once (`follow_leaders`): it finds by them what it has, while it remembers them. What the old leader says after that changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from ottla.client.metadata.cluster import Cluster
from ottla.client.metrics.producer_sensors import ProducerSensors
from ottla.client.network.client_request import ClientResponse
from ottla.client.network.network_client import NetworkClient
from ottla.client.producer import batch_events
from ottla.client.producer.config import ProducerConfig
from ottla.client.producer.events import BatchSplit
from ottla.client.producer.producer_batch import ProducerBatch
from ottla.client.producer.record_accumulator import RecordAccumulator
from ottla.client.producer.transaction_manager import TransactionManager
from ottla.client.producer.unheard import UnheardFailures
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
"""Apart from the log of this module, so that a command can show it alone."""
LONG_RETRY_SECONDS = 2.0
"""After so many seconds without a record written to a partition a warning names the error."""

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


class Departure(NamedTuple):
    """Batches that left for a broker in one request."""

    node: int
    batches: list[ProducerBatch]


class InFlightBatches:
    """What brokers have not answered for yet."""

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
        self._batches: dict[ProducerBatch, Departure] = {}
        """Each with the request in which it left last."""
        self._hindrances: dict[TopicPartition, tuple[float, Exception]] = {}
        """When and why a batch of a partition was to be sent again last, until one arrives: those behind it wait for the same."""
        self._hindered_since: dict[TopicPartition, float] = {}
        """Since when nothing has been written to a partition though it was tried."""
        self._reported: set[int] = set()
        """Error codes of which a warning has said that they have kept records for long."""
        self._cluster = self._metadata.cluster
        """As it was when `follow_leaders` last looked."""
        self.unheard = UnheardFailures()
        """What failed without anybody hearing of it. Of a transaction its commit tells."""
        self.any_finished = False
        """Whether a batch has come to its end since somebody set this back."""

    def add(self, node: int, batches: list[ProducerBatch]) -> Departure:
        """They leave now. Where one request at a time keeps the order, their partitions wait for the answer."""
        departure = Departure(node, batches)
        for batch in batches:
            self._batches[batch] = departure
            if self._in_order:
                self._accumulator.mute(batch.tp)
        return departure

    def unsettled(self, departure: Departure) -> list[ProducerBatch]:
        """Those of a request that wait for its answer still."""
        return [batch for batch in departure.batches if self._batches.get(batch) is departure]

    def follow_leaders(self, cluster: Cluster, now: float) -> None:
        """Queue again what has numbers and is in flight to a broker that is not its leader any more."""
        if cluster is self._cluster:
            return
        self._cluster = cluster
        if self._transactions is None:
            return  # nobody would see that it is there twice
        for batch, departure in list(self._batches.items()):
            leader = cluster.leader(batch.tp)
            if leader is not None and leader.node_id != departure.node:
                self._follow(batch, f"{batch.tp}: node {leader.node_id} leads by now, not {departure.node}", now)

    def _follow(self, batch: ProducerBatch, why: str, now: float) -> None:
        error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, why)
        if self._can_retry(batch, error, now, -1):
            self._land(batch)
            self._try_again(batch, error, now)
            batch.retry_at = now

    def listed(self) -> list[ProducerBatch]:
        """What was sent and has no outcome; RuntimeError where another thread changes it meanwhile."""
        return list(self._batches)

    def fail_all(self, error: Exception) -> None:
        """Nothing can be sent any more."""
        for batch in [*self._batches, *self._accumulator.queued_batches()]:
            self._land(batch)
            self.finish(batch, error)

    def settle(self, response: ClientResponse, batches: list[ProducerBatch], names: Mapping[UUID, str]) -> None:
        """Take an answer apart, batch by batch; a batch that it says nothing of is tried again. `names` are those of topics known by ids."""
        message: Any = response.message
        now = response.received
        waiting = {batch.tp: batch for batch in batches}
        moved = self._metadata.learn_leaders(
            new_leaders(message, names),
            [Node(node.node_id, node.host, node.port, node.rack) for node in message.node_endpoints],
        )
        hurried = [waiting[tp] for tp in moved if tp in waiting]
        for topic in message.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for answer in topic.partition_responses:
                if answer.error_code == ErrorCode.REQUEST_TIMED_OUT:
                    self._client.doubt(response.node_id)  # its followers do not fetch: are they another's by now?
                batch = waiting.pop(TopicPartition(name, answer.index), None)
                if batch is not None:
                    self._complete_by_answer(batch, answer, now)
        for batch in hurried:
            batch.retry_at = now  # it is known who leads now (KIP-951): there is nothing to wait for
        for batch in waiting.values():
            self.complete(batch, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer left the batch out"), now)

    def _complete_by_answer(self, batch: ProducerBatch, answer: Any, now: float) -> None:
        if answer.error_code == ErrorCode.NONE:
            self.complete(batch, None, now, answer.base_offset, answer.log_append_time_ms)
        elif answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # It is in the log, so long ago that the broker has forgotten where.
            self.complete(batch, None, now)
        elif answer.error_code == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1 and batch in self._batches:
            LOG.info("[%s] %s: a batch of %d records is too large, split", self._name, batch.tp, batch.count)
            self._land(batch)
            self._sensors.splits.record(1)
            if self._events.active:
                self._events.tell(BatchSplit(batch.tp, batch.count))
            parts = self._accumulator.split_and_reenqueue(batch)
            if self._transactions is not None:
                self._transactions.sequences.split(batch, parts)
            self._accumulator.finish(batch)
        elif answer.error_code == ErrorCode.INVALID_RECORD and answer.record_errors:
            remarks = {e.batch_index: e.batch_index_error_message or "invalid" for e in answer.record_errors}
            self.complete(batch, remarks, now)
        else:
            error = error_for(answer.error_code, f"{batch.tp}: {answer.error_message or 'refused'}")
            self.complete(batch, error, now, log_start_offset=answer.log_start_offset)

    def complete(
        self,
        batch: ProducerBatch,
        error: Exception | Mapping[int, str] | None,
        now: float,
        base_offset: int = -1,
        log_append_time: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        """Settle a batch, or queue it again; nothing happens to one that was given up before its answer came."""
        if isinstance(error, KafkaError) and error.code in LEADER_MOVED:
            self._metadata.request_update()
        if batch not in self._batches:
            return
        self._land(batch)
        if self._can_retry(batch, error, now, log_start_offset):
            self._try_again(batch, error, now)
            return
        if error is not None:
            # When the retries are used up an earlier attempt may have been written.
            self.give_up(batch, error, certain=batch.attempts < self._config.retries)
            return
        if self._hindered_since:
            self._recovered(batch, now)
        if self._transactions is not None:
            self._transactions.sequences.completed(batch, base_offset)
        self.finish(batch, None, base_offset, log_append_time)

    def _try_again(self, batch: ProducerBatch, error: Any, now: float) -> None:
        LOG.debug("[%s] %s: %s, trying again", self._name, batch.tp, error)
        batch.last_error = error if isinstance(error, Exception) else None
        if isinstance(error, KafkaError) and error.code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self._hindrances[batch.tp] = now, error  # that one just says that another is to come before it
            self._report_long_retry(batch, error, now)
        self._accumulator.reenqueue(batch, now)
        self._sensors.retried.of(batch.tp.topic).record(batch.count)
        if self._events.active:
            self._events.tell(batch_events.retried(batch, error, now))

    def _report_long_retry(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        """Log one warning where a partition takes no records for long, as on a full disk; one for each kind of error."""
        since = self._hindered_since.setdefault(batch.tp, now)
        if now - since >= LONG_RETRY_SECONDS and error.code not in self._reported:
            self._reported.add(error.code)
            RETRIES.warning(
                "[%s] records are sent again and again: partition=%s seconds=%.0f delivery.timeout.ms=%d error=%s",
                self._name,
                batch.tp,
                now - since,
                self._config.delivery_timeout_ms,
                error,
            )

    def _recovered(self, batch: ProducerBatch, now: float) -> None:
        """Records of the batch's partition are written again."""
        self._hindrances.pop(batch.tp, None)
        since = self._hindered_since.pop(batch.tp, now)
        if not self._hindered_since and self._reported:
            self._reported.clear()
            RETRIES.info("[%s] records are written again: partition=%s seconds=%.0f", self._name, batch.tp, now - since)

    def _can_retry(self, batch: ProducerBatch, error: Any, now: float, log_start_offset: int) -> bool:
        if not isinstance(error, KafkaError) or batch.attempts >= self._config.retries:
            return False
        if self._accumulator.is_expired(batch, now):
            return False
        if self._transactions is None:
            return error.retriable
        return self._transactions.can_retry(batch, error, log_start_offset)

    def give_up(self, batch: ProducerBatch, error: Any, *, certain: bool) -> None:
        """A batch failed; `certain` tells that nothing of it was written."""
        if self._transactions is not None:
            cause = error if isinstance(error, Exception) else batch.result.error_by_remark(None)
            self._transactions.batch_failed(batch, cause, certain=certain)
        self.finish(batch, error)

    def _land(self, batch: ProducerBatch) -> None:
        self._batches.pop(batch, None)
        if self._in_order:
            self._accumulator.unmute(batch.tp)

    def finish(self, batch: ProducerBatch, error: Any, base_offset: int = -1, log_append_time: int = -1) -> None:
        """It has its outcome, which whoever waits hears, and its memory is free."""
        if error is not None:
            self._sensors.failed.of(batch.tp.topic).record(batch.count)
        if error is not None and not isinstance(error, TransactionAbortedError):
            LOG.warning("[%s] %s: %d records failed: %s", self._name, batch.tp, batch.count, error)
        if self._events.active:
            batch_events.tell_finished(self._events, batch, error, base_offset, self._client.clock.monotonic())
        heard = 0 if batch.result.deliveries is None else len(batch.result.deliveries.callbacks)
        batch.result.complete(base_offset, log_append_time, error)
        self.any_finished = True
        if error is not None and (self._transactions is None or self._transactions.transactional_id is None):
            self.unheard.note(batch, heard, batch.count)
        self._accumulator.finish(batch)

    def fail_expired(self, now: float) -> None:
        """Give up batches, queued or in flight, whose delivery timeout has passed."""
        late = [batch for batch in self._batches if self._accumulator.is_expired(batch, now)]
        for batch in late:
            self._land(batch)
        for batch in late:
            self.give_up(batch, self._too_late(batch, batch.attempts + 1), certain=False)
        for batch in self._accumulator.expired_batches(now):
            self.give_up(batch, self._too_late(batch, batch.attempts), certain=False)

    def fail_refused(self, error: AuthenticationError) -> None:
        """Give up what is queued for brokers that do not take us: waiting would not help."""
        cluster = self._metadata.cluster
        refusing = [node for node in cluster.nodes if self._client.failed(node)]
        for batch in self._accumulator.batches_led_by(cluster, refusing):
            self.give_up(batch, error, certain=False)

    def next_expiry(self) -> float:
        """When the next one's time is over, on the clock that says when it was created."""
        span = self._config.delivery_timeout_ms / 1000
        return min((batch.created + span for batch in self._batches), default=FOREVER)

    def _too_late(self, batch: ProducerBatch, sent: int) -> KafkaTimeoutError:
        when, hindrance = self._hindrances.get(batch.tp, (-FOREVER, None))
        cause = (hindrance if when >= batch.created else None) or batch.last_error or self._client.trouble()
        return KafkaTimeoutError(
            f"{batch.count} {'record' if batch.count == 1 else 'records'} for {batch.tp} not delivered within "
            f"delivery.timeout.ms = {self._config.delivery_timeout_ms}, {times(sent)}: {cause}"
        )

    def abort(self) -> None:
        """Fail what is left at a forced close, and say how much that is."""
        left = self._accumulator.incomplete()
        if left:
            lost = sum(batch.count for batch in left)
            LOG.error("[%s] closed with %d records undelivered: %s", self._name, lost, self._client.trouble())
        for batch in left:
            error = IllegalStateError("the producer was closed before the record was delivered")
            if self._events.active:
                batch_events.tell_finished(self._events, batch, error, -1, self._client.clock.monotonic())
            batch.result.complete(error=error)
            self._accumulator.finish(batch)
        if self._transactions is not None:
            with self._transactions.lock:
                self._transactions.machine.drop_requests(
                    IllegalStateError("the producer was closed before this was done")
                )


def times(sent: int) -> str:
    """How often that was."""
    return "never sent" if not sent else "sent once" if sent == 1 else f"sent {sent} times"


def new_leaders(message: Any, names: Mapping[UUID, str]) -> dict[TopicPartition, tuple[int, int]]:
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
