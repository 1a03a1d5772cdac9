"""The requests of a transactional producer, and the meaning of each error to them.

Pure: `TxnRequests` decides their order, `TransactionSender` sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from uuid import UUID

from ottla.client.metadata.coordinators import GROUP, LAST_VERSION_WITH_ONE_KEY, TRANSACTION
from ottla.client.metadata.metadata_snapshot import NO_ID
from ottla.client.producer.producer_id_and_epoch import NO_PRODUCER, ProducerIdAndEpoch
from ottla.client.producer.transactions.call_outcome import CallOutcome
from ottla.errors import ErrorCode
from ottla.model import FOREVER, OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata

LAST_ADD_PARTITIONS_VERSION = 3
"""Later versions are for brokers."""
LAST_INIT_PRODUCER_ID_VERSION = 5
"""The next version is for transactions with two-phase commit (KIP-939)."""
FIRST_VERSION_WITH_EPOCH = 3
LAST_OFFSET_COMMIT_VERSION_WITH_NAMES = 5
"""Later versions have topic ids (KIP-1319)."""
LAST_OFFSET_COMMIT_VERSION_BEFORE_V2 = 4
"""With later versions the coordinator adds the offsets to the transaction itself (KIP-890)."""
LAST_END_TXN_VERSION_BEFORE_V2 = 4
"""Later responses contain id and epoch of the next transaction (KIP-890)."""


class Verdict(IntEnum):
    """The reaction to an error, in order of severity."""

    RETRY = 0
    REDISCOVER = 1
    """Another broker may be the coordinator now."""
    ABORT = 2
    """The transaction can only be aborted."""
    FENCED = 3
    FATAL = 4


class Priority(IntEnum):
    """The order of waiting requests."""

    FIND_COORDINATOR = 0
    INIT_PRODUCER_ID = 1
    ADD_PARTITIONS_OR_OFFSETS = 2
    END_TXN = 3


ERRORS: Mapping[int, Verdict] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Verdict.RETRY,
    ErrorCode.CONCURRENT_TRANSACTIONS: Verdict.RETRY,
    ErrorCode.REQUEST_TIMED_OUT: Verdict.RETRY,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.RETRY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Verdict.REDISCOVER,
    ErrorCode.NOT_COORDINATOR: Verdict.REDISCOVER,
    ErrorCode.NETWORK_EXCEPTION: Verdict.REDISCOVER,
    ErrorCode.TRANSACTION_ABORTABLE: Verdict.ABORT,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Verdict.ABORT,
    ErrorCode.OPERATION_NOT_ATTEMPTED: Verdict.ABORT,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Verdict.ABORT,
    ErrorCode.INVALID_GROUP_ID: Verdict.ABORT,
    ErrorCode.UNKNOWN_PRODUCER_ID: Verdict.ABORT,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Verdict.ABORT,
    ErrorCode.UNKNOWN_MEMBER_ID: Verdict.ABORT,
    ErrorCode.ILLEGAL_GENERATION: Verdict.ABORT,
    ErrorCode.STALE_MEMBER_EPOCH: Verdict.ABORT,
    ErrorCode.GROUP_ID_NOT_FOUND: Verdict.ABORT,
    ErrorCode.UNKNOWN_TOPIC_ID: Verdict.ABORT,
    ErrorCode.FENCED_INSTANCE_ID: Verdict.ABORT,
    ErrorCode.OFFSET_METADATA_TOO_LARGE: Verdict.ABORT,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE: Verdict.ABORT,
    ErrorCode.PRODUCER_FENCED: Verdict.FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH: Verdict.FENCED,
}
"""The verdict for an error; any other error is fatal."""

Failure = tuple[str, int]
"""The partition (or an empty text) and its error code."""


class ResponseHandler(Protocol):
    """The state that successful responses update."""

    def set_coordinator(self, kind: int, key: str, node_id: int, host: str, port: int) -> None: ...
    def set_producer(self, producer: ProducerIdAndEpoch) -> None: ...
    def handle_end(self, producer: ProducerIdAndEpoch) -> None: ...
    def confirm_partitions(self, partitions: Any) -> None: ...


class TxnRequest:
    """One request, sent again until there is a final response."""

    NAME: ClassVar[str]
    PRIORITY: ClassVar[Priority]
    JOINS: ClassVar[bool] = False
    """True if it adds something to the transaction. Once it was sent, the coordinator may have added it."""
    OVERRIDES: ClassVar[Mapping[int, Verdict]] = {}
    """Verdicts that differ from `ERRORS` for this request."""

    def __init__(self, message: Any, coordinator: tuple[int, str] | None, max_version: int | None = None) -> None:
        self.message = message
        self.coordinator = coordinator
        """Kind and key of the coordinator; None if any broker can answer."""
        self.max_version = max_version
        self.outcome = CallOutcome()
        self.attempts = 0
        self.retry_at = -FOREVER

    def find_failures(self, answer: Any) -> list[Failure]:
        """Return the errors of a response; an empty list if it succeeded."""
        return [] if answer.error_code == ErrorCode.NONE else [("", answer.error_code)]

    def handle_success(self, answer: Any, handler: ResponseHandler) -> None:
        """Apply a successful response to `learner`."""

    def classify_error(self, code: int) -> Verdict:
        """Return the reaction of this request to an error."""
        return self.OVERRIDES.get(code, ERRORS.get(code, Verdict.FATAL))


class FindCoordinator(TxnRequest):
    """Finds the coordinator of a transactional id or a group. Any broker can answer."""

    NAME = "FindCoordinator"
    PRIORITY = Priority.FIND_COORDINATOR
    OVERRIDES: ClassVar[Mapping[int, Verdict]] = {
        ErrorCode.COORDINATOR_NOT_AVAILABLE: Verdict.RETRY,
        ErrorCode.NETWORK_EXCEPTION: Verdict.RETRY,
    }

    def __init__(self, kind: int, key: str) -> None:
        super().__init__(FindCoordinatorRequest(key=key, key_type=kind), None, LAST_VERSION_WITH_ONE_KEY)
        self.kind = kind
        self.key = key

    def handle_success(self, answer: Any, handler: ResponseHandler) -> None:
        handler.set_coordinator(self.kind, self.key, answer.node_id, answer.host, answer.port)


class InitProducerId(TxnRequest):
    """Requests a producer id, or the next epoch of the current one.

    The coordinator of a transactional id fences its previous producer; without such an id any broker can answer.
    """

    NAME = "InitProducerId"
    PRIORITY = Priority.INIT_PRODUCER_ID
    OVERRIDES: ClassVar[Mapping[int, Verdict]] = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.FATAL}

    def __init__(self, transactional_id: str | None, timeout_ms: int, producer: ProducerIdAndEpoch) -> None:
        coordinator = None if transactional_id is None else (TRANSACTION, transactional_id)
        super().__init__(
            InitProducerIdRequest(transactional_id, timeout_ms, *producer), coordinator, LAST_INIT_PRODUCER_ID_VERSION
        )
        self.producer = producer
        """The producer for the next epoch; NO_PRODUCER at the start."""

    @property
    def is_bump(self) -> bool:
        """True if it requests the next epoch of a running producer (brokers since 2.5)."""
        return self.producer != NO_PRODUCER

    def handle_success(self, answer: Any, handler: ResponseHandler) -> None:
        handler.set_producer(ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch))


class AddPartitionsToTxn(TxnRequest):
    """Adds partitions to the transaction before they are written; required before version 2 of transactions.

    All of them are added, or none.
    """

    NAME = "AddPartitionsToTxn"
    PRIORITY = Priority.ADD_PARTITIONS_OR_OFFSETS
    JOINS = True

    def __init__(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> None:
        self.partitions = frozenset(partitions)
        topics: dict[str, list[int]] = {}
        for tp in sorted(self.partitions):
            topics.setdefault(tp.topic, []).append(tp.partition)
        message = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()],
        )
        super().__init__(message, (TRANSACTION, transactional_id), LAST_ADD_PARTITIONS_VERSION)

    def find_failures(self, answer: Any) -> list[Failure]:
        results = [
            (f"{topic.name}-{each.partition_index}", each.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        ]
        failed = [failure for failure in results if failure[1] != ErrorCode.NONE]
        # The error of one partition keeps the others out; that one is reported.
        return [failure for failure in failed if failure[1] != ErrorCode.OPERATION_NOT_ATTEMPTED] or failed

    def handle_success(self, answer: Any, handler: ResponseHandler) -> None:
        handler.confirm_partitions(self.partitions)


class AddOffsetsToTxn(TxnRequest):
    """Adds a group's offsets to the transaction; required before version 2 of transactions."""

    NAME = "AddOffsetsToTxn"
    PRIORITY = Priority.ADD_PARTITIONS_OR_OFFSETS
    JOINS = True

    def __init__(self, transactional_id: str, producer: ProducerIdAndEpoch, group_id: str) -> None:
        message = AddOffsetsToTxnRequest(transactional_id, *producer, group_id)
        super().__init__(message, (TRANSACTION, transactional_id))


class TxnOffsetCommit(TxnRequest):
    """Commits a group's offsets as a part of the transaction (KIP-447).

    The group's coordinator rejects a generation that has ended. With the ids of all topics, it also rejects offsets of a topic
    that was deleted and created again (KIP-1319).
    """

    NAME = "TxnOffsetCommit"
    PRIORITY = Priority.ADD_PARTITIONS_OR_OFFSETS

    def __init__(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        group: ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        topic_ids: Mapping[str, UUID],
        *,
        v2: bool,
    ) -> None:
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for tp, at in sorted(offsets.items()):
            part = TxnOffsetCommitRequestPartition(tp.partition, at.offset, at.leader_epoch, at.metadata)
            topics.setdefault(tp.topic, []).append(part)
        message = TxnOffsetCommitRequest(
            transactional_id,
            group.group_id,
            *producer,
            group.generation_id,
            group.member_id,
            group.group_instance_id,
            [TxnOffsetCommitRequestTopic(name, topic_ids.get(name, NO_ID), parts) for name, parts in topics.items()],
        )
        last = None if topics.keys() <= topic_ids.keys() else LAST_OFFSET_COMMIT_VERSION_WITH_NAMES
        super().__init__(message, (GROUP, group.group_id), last if v2 else LAST_OFFSET_COMMIT_VERSION_BEFORE_V2)
        self._names = {topic_id: name for name, topic_id in topic_ids.items()}

    def find_failures(self, answer: Any) -> list[Failure]:
        return [
            (f"{topic.name or self._names.get(topic.topic_id, '')}-{each.partition_index}", each.error_code)
            for topic in answer.topics
            for each in topic.partitions
            if each.error_code != ErrorCode.NONE
        ]


class EndTxn(TxnRequest):
    """Commits or aborts the transaction; sent once every record of it has its result."""

    NAME = "EndTxn"
    PRIORITY = Priority.END_TXN
    OVERRIDES: ClassVar[Mapping[int, Verdict]] = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Verdict.FATAL}

    def __init__(self, transactional_id: str, producer: ProducerIdAndEpoch, *, commit: bool, v2: bool) -> None:
        message = EndTxnRequest(transactional_id, *producer, commit)
        super().__init__(message, (TRANSACTION, transactional_id), None if v2 else LAST_END_TXN_VERSION_BEFORE_V2)

    def handle_success(self, answer: Any, handler: ResponseHandler) -> None:
        handler.handle_end(ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch))
