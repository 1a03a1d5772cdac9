"""Produce: append record batches.

Only the header of a batch is read, unless the topic's configs require more. Duplicates of idempotent producers are not
appended.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.apis import transactional_write
from ottla.broker.network_server.call import Call, DisconnectError, Outcome
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.leadership import Leadership, WaitingProduce
from ottla.broker.replica_manager.log_flusher import must_flush_first
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.security.authorization import Access
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError, RecordsRefusedError, error_for, name_of
from ottla.model import Buffer, TopicPartition
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ottla.records.batch import CODEC_MASK, FLAGS_POSITION, HEADER_BYTES, LENGTH_FIELD, PREFIX_BYTES, TRANSACTIONAL
from ottla.records.compression import Codec
from ottla.storage.log.append_path import Appended

if TYPE_CHECKING:
    from ottla.broker.coordinators.remote_coordinators import VerificationCodes
    from ottla.broker.schema_validation.validation import Refusals

ZSTD_SINCE = 7
"""From this version on batches may be compressed by zstd (KIP-110)."""
IDS_SINCE = 13
"""From this version on topics have ids instead of names."""
ACKS_ALL = -1
ACKS = (ACKS_ALL, 0, 1)
ProduceOutcome = Appended | KafkaError | CorruptRecordError
Unflushed = tuple[Partition, PartitionProduceResponse]
Uncommitted = tuple[Leadership, PartitionProduceResponse, int]
"""An append that must be committed: the leader, the place of the result, and the end offset."""


def handle(node: BrokerNode, call: Call, request: ProduceRequest) -> ProduceResponse | Outcome:
    """Append and respond: with `flush.messages` after the flush, with acks=all once it is committed."""
    if node.access is not None and is_denied(node.access, call, request):
        response = denied_response(request)
        return response if request.acks else drop_response(response)
    validated = list(validated_batches(node, call, request))
    if validated:
        return append_validated(node, call, request, validated)
    return append_acceptable(node, call, request, {})


def validated_batches(node: BrokerNode, call: Call, request: ProduceRequest) -> Iterator[tuple[TopicPartition, Buffer]]:
    """Yield the batches of topics with schema validation that the client may write to."""
    for topic in request.topic_data:
        name = node.topics.name_of(topic.topic_id) if call.version >= IDS_SINCE else topic.name
        for data in topic.partition_data:
            partition = None if name is None else node.partitions.find(name, data.index)
            if partition is None or not partition.validates_schemas or not partition.leads or data.records is None:
                continue
            if node.access is None or may_write(node.access, call, name):
                yield partition.topic_partition, data.records


def append_validated(
    node: BrokerNode, call: Call, request: ProduceRequest, batches: list[tuple[TopicPartition, Buffer]]
) -> ProduceResponse | Outcome:
    """Append the records once the schema registry has reported their schemas."""

    def continue_validated(refusals: Refusals) -> None:
        call.resume(lambda: append_acceptable(node, call, request, refusals))

    refusals = node.schema_validation.validate(batches, continue_validated)
    if refusals is not None:
        return append_acceptable(node, call, request, refusals)
    keep_records(request)
    return Outcome.LATER


def append_acceptable(
    node: BrokerNode, call: Call, request: ProduceRequest, refusals: Refusals
) -> ProduceResponse | Outcome:
    """Append the records except the refused batches."""
    if node.coordinators is not None and request.transactional_id is not None:
        return append_verified(node, call, request, refusals)
    return append_all(node, call, request, {}, refusals)


def append_verified(
    node: BrokerNode, call: Call, request: ProduceRequest, refusals: Refusals
) -> ProduceResponse | Outcome:
    """Append the records once a remote coordinator has verified the partitions of the transaction."""

    def continue_verified(verdicts: VerificationCodes) -> None:
        call.resume(lambda: append_all(node, call, request, verdicts, refusals))

    def allowed(topic: str) -> bool:
        return node.access is None or may_write(node.access, call, topic)

    verification = transactional_write.verification_for(node, request, call.version, allowed, continue_verified)
    if verification is None:
        return append_all(node, call, request, {}, refusals)
    assert node.coordinators is not None
    keep_records(request)
    if node.coordinators.verify(verification):
        return Outcome.LATER
    unavailable = dict.fromkeys(verification.partitions, int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    return append_all(node, call, request, unavailable, refusals)


def keep_records(request: ProduceRequest) -> None:
    """Copy the batches, to keep them beyond the lifetime of their frame."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = bytes(data.records)


def append_all(
    node: BrokerNode, call: Call, request: ProduceRequest, verdicts: VerificationCodes, refusals: Refusals
) -> ProduceResponse | Outcome:
    """Append the valid batches, and respond within the timeout."""
    unflushed: list[Unflushed] = []
    uncommitted: list[Uncommitted] = []
    response = ProduceResponse(
        [
            append_topic(node, call, request, topic, unflushed, uncommitted, verdicts, refusals)
            for topic in request.topic_data
        ]
    )
    if not request.acks:
        return drop_response(response)
    if not unflushed:
        return wait_for_commit(node, call, request.timeout_ms, response, uncommitted) if uncommitted else response
    then = partial(wait_for_commit, node, call, request.timeout_ms, response, uncommitted)
    Flushing(call, unflushed, then).start(node)
    return Outcome.LATER


def wait_for_commit(
    node: BrokerNode,
    call: Call,
    timeout_ms: int,
    response: ProduceResponse,
    uncommitted: list[Uncommitted],
) -> ProduceResponse | Outcome:
    """Return the response once the records are committed, or after the timeout, when their outcome is unknown.

    Many may wait here. None of them keeps its request, which is as large as its records.
    """
    left = [each for each in uncommitted if not is_settled(each)]
    if not left:
        return response
    deadline = call.received + timeout_ms / 1000
    if node.waiting.closed or node.clock.monotonic() >= deadline:
        for _, result, end_offset in left:
            record_outcome(result, not_committed(end_offset, timeout_ms))
        return response
    required: dict[Leadership, int] = {}
    for leadership, _, end_offset in left:
        required[leadership] = min(end_offset, required.get(leadership, end_offset))
    again = partial(call.resume, lambda: wait_for_commit(node, call, timeout_ms, response, left))
    produce = WaitingProduce(required, again, call)
    call.is_appended = True
    node.waiting.add(produce, deadline)
    return Outcome.LATER


def is_settled(uncommitted: Uncommitted) -> bool:
    """Return True if the outcome of a partition's batch is known. An error is added to the response."""
    leadership, result, end_offset = uncommitted
    code = leadership.find_outcome(end_offset)
    if code:
        record_outcome(result, may_be_lost(end_offset, code))
    return code is not None or bool(result.error_code)


def not_committed(end_offset: int, timeout_ms: int) -> KafkaError:
    """Return the error of a batch that was not committed in time."""
    why = f"offset {end_offset - 1} was not committed within timeout.ms = {timeout_ms}"
    return error_for(ErrorCode.REQUEST_TIMED_OUT, why)


def may_be_lost(end_offset: int, code: int) -> KafkaError:
    """Return the error of a batch that was appended, while this broker could not get it committed."""
    return error_for(code, f"offset {end_offset - 1} was appended, and may be lost: {name_of(code)}")


def drop_response(response: ProduceResponse) -> Outcome:
    """Return no response to a producer with acks=0. After an error its connection is closed instead."""
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                why = partition.error_message or name_of(partition.error_code)
                raise DisconnectError(
                    f"produce with acks=0 to {topic.name or topic.topic_id}-{partition.index} failed: {why}"
                )
    return Outcome.SILENT


def is_denied(access: Access, call: Call, request: ProduceRequest) -> bool:
    """Return True if the request has a transactional id that the client may not use."""
    transactional_id = request.transactional_id
    return transactional_id is not None and not access.allows(
        call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    )


def denied_response(request: ProduceRequest) -> ProduceResponse:
    """Return the denial of a transactional id, for every partition."""
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name,
                topic.topic_id,
                [PartitionProduceResponse(each.index, code, base_offset=-1) for each in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def append_topic(
    node: BrokerNode,
    call: Call,
    request: ProduceRequest,
    data: TopicProduceData,
    unflushed: list[Unflushed],
    uncommitted: list[Uncommitted],
    verdicts: VerificationCodes,
    refusals: Refusals,
) -> TopicProduceResponse:
    """Append the records for one topic."""
    name: str | None = data.name
    if call.version >= IDS_SINCE:
        name = node.topics.name_of(data.topic_id)
    results = []
    is_refused = node.access is not None and not may_write(node.access, call, name)
    for each in data.partition_data:
        result = PartitionProduceResponse(each.index, base_offset=-1)
        try:
            if is_refused:
                raise error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "WRITE is not allowed on this topic")
            partition = find_partition(node, name, each.index, request)
            check_codec(each, call.version)
            if partition.topic_partition in refusals:
                raise refusals[partition.topic_partition]
            last_offset = append_records(
                node, partition, each, result, request.transactional_id, call.version, verdicts
            )
            if partition.leadership is not None and request.acks == ACKS_ALL:
                uncommitted.append((partition.leadership, result, last_offset + 1))
            if must_flush_first(partition.log):
                unflushed.append((partition, result))
        except (KafkaError, CorruptRecordError) as error:
            record_outcome(result, error)
            if not is_refused:
                note_refusal(node, data.topic_id if name is None else name, each.index, each.records, error)
        results.append(result)
    return TopicProduceResponse(data.name, data.topic_id, results)


def may_write(access: Access, call: Call, name: str | None) -> bool:
    """Return True if the client may write to a topic. An unknown topic id is rejected elsewhere."""
    return name is None or access.allows(call, Operation.WRITE, ResourceType.TOPIC, name)


def find_partition(node: BrokerNode, name: str | None, index: int, request: ProduceRequest) -> Partition:
    """Return the partition. KafkaError if this request may not append to it."""
    if request.acks not in ACKS:
        raise error_for(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, it can be 0, 1 or -1 (all)")
    if name is None:
        raise error_for(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has that id")
    partition = node.partitions.find(name, index)
    if partition is None:
        raise build_missing_error(node, name, index)
    if not partition.leads:
        raise error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"another broker leads {name}-{index}")
    if partition.internal:
        raise error_for(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is written by the broker alone")
    if request.acks == ACKS_ALL:
        ensure_enough_in_sync(partition)
    return partition


def ensure_enough_in_sync(partition: Partition) -> None:
    """Raise KafkaError(NOT_ENOUGH_REPLICAS) if the append could not be committed."""
    leadership = partition.leadership
    if leadership is None:
        in_sync, least = partition.replicas_in_sync, partition.min_insync_replicas
    else:
        in_sync, least = len(leadership.machine.assignment.in_sync), leadership.machine.assignment.quorum
    if in_sync < least:
        raise error_for(ErrorCode.NOT_ENOUGH_REPLICAS, f"{in_sync} in sync, min.insync.replicas is {least}")


def build_missing_error(node: BrokerNode, name: str, index: int) -> KafkaError:
    """Return the error for a missing partition."""
    code = node.topics.name_error(name) or node.topics.absent_code(name, index)
    return error_for(code, f"there is no partition {name}-{index}")


def check_codec(data: PartitionProduceData, version: int) -> None:
    """Raise KafkaError for an unknown codec, and for one that readers of that version do not know."""
    if data.records is None or len(data.records) < HEADER_BYTES:
        return
    codec = data.records[FLAGS_POSITION] & CODEC_MASK
    if codec > Codec.ZSTD:
        raise error_for(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"{codec} is not a codec: expected 0 to 4 (zstd)")
    if codec == Codec.ZSTD and version < ZSTD_SINCE:
        raise error_for(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd requires Produce v{ZSTD_SINCE}, and this is v{version}"
        )


def append_records(
    node: BrokerNode,
    partition: Partition,
    data: PartitionProduceData,
    result: PartitionProduceResponse,
    transactional_id: str | None,
    version: int,
    verdicts: VerificationCodes,
) -> int:
    """Append a batch and set its result. Return the offset of its last record."""
    records: Buffer | None = data.records
    if records is None or len(records) < HEADER_BYTES:
        raise error_for(
            ErrorCode.INVALID_RECORD, "a Produce request must have one record batch for each partition, and has none"
        )
    if int.from_bytes(records[LENGTH_FIELD], "big") + PREFIX_BYTES < len(records):
        raise error_for(
            ErrorCode.INVALID_RECORD, "a Produce request must have one record batch for each partition, and has more"
        )
    if records[FLAGS_POSITION] & TRANSACTIONAL:
        if transactional_id is None:
            raise error_for(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "the batch is part of a transaction, and the request names no transactional.id",
            )
        transactional_write.check_write(node, partition, records, transactional_id, version, verdicts)
    if node.refused_sequences:
        ensure_in_sequence(node, partition, records)
    appended = node.append(partition, records)
    record_outcome(result, appended)
    return appended.last_offset


def ensure_in_sequence(node: BrokerNode, partition: Partition, records: Buffer) -> None:
    """Raise KafkaError(OUT_OF_ORDER_SEQUENCE_NUMBER) if an earlier batch was rejected and must be sent first."""
    place, entries = partition.topic_partition, partition.log.producers.entries
    node.refused_sequences.ensure_lowest(place, partition.topic_id, records, entries, node.clock.monotonic())


def note_refusal(
    node: BrokerNode,
    topic: str | uuid.UUID,
    index: int,
    records: Buffer | None,
    error: KafkaError | CorruptRecordError,
) -> None:
    """Remember the sequence of a rejected batch that its client will send again."""
    code = error.code if isinstance(error, KafkaError) else ErrorCode.CORRUPT_MESSAGE
    node.refused_sequences.record_refusal(topic, index, records, code, node.clock.monotonic())


def record_outcome(result: PartitionProduceResponse, outcome: ProduceOutcome) -> None:
    """Set the offsets of an appended batch, or its error, in the result."""
    if isinstance(outcome, Appended):
        result.base_offset = outcome.base_offset
        result.log_append_time_ms = outcome.log_append_time_ms
        result.log_start_offset = outcome.log_start_offset
        return
    if isinstance(outcome, KafkaError):
        set_error(result, outcome.code, outcome.reason)
    else:
        set_error(result, ErrorCode.CORRUPT_MESSAGE, str(outcome))
    if isinstance(outcome, RecordsRefusedError):
        result.record_errors = [BatchIndexAndErrorMessage(index, fault) for index, fault in outcome.faults]


def response_of(request: ProduceRequest, outcomes: Iterable[ProduceOutcome]) -> ProduceResponse:
    """Return the response for the outcome of each batch."""
    left = iter(outcomes)
    return ProduceResponse(
        [
            TopicProduceResponse(
                topic.name, topic.topic_id, [result_of(each.index, next(left)) for each in topic.partition_data]
            )
            for topic in request.topic_data
        ]
    )


def result_of(index: int, outcome: ProduceOutcome) -> PartitionProduceResponse:
    """Return the result of one partition."""
    result = PartitionProduceResponse(index, base_offset=-1)
    record_outcome(result, outcome)
    return result


def set_error(result: PartitionProduceResponse, code: int, message: str) -> None:
    """Turn a result into an error."""
    result.error_code = code
    result.base_offset = -1
    result.error_message = message


class Flushing:
    """A Produce request with records that are being flushed."""

    def __init__(self, call: Call, unflushed: list[Unflushed], then: Callable[[], ProduceResponse | Outcome]) -> None:
        self._call = call
        self._then = then
        self._unflushed = unflushed
        self._left = len(unflushed)

    def start(self, node: BrokerNode) -> None:
        for partition, result in self._unflushed:
            node.flusher.flush(partition, lambda error, result=result: self._flushed(result, error))  # type: ignore[misc]

    def _flushed(self, result: PartitionProduceResponse, error: BaseException | None) -> None:
        if error is not None:
            set_error(
                result, ErrorCode.KAFKA_STORAGE_ERROR, error.reason if isinstance(error, KafkaError) else str(error)
            )
        self._left -= 1
        if not self._left:
            self._call.resume(self._then)
