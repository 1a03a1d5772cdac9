"""Produce: append record batches.

The broker looks at the header of a batch, and into it only where the topic's configs ask for that. What an idempotent
producer sends twice is kept once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker import transactional_write
from ottla.broker.access import Access
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.flusher import must_flush_first
from ottla.broker.partitions.leadership import Leadership, WaitingProduce
from ottla.broker.partitions.partition import Partition
from ottla.broker.requests.call import Call, HangUp, Outcome
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError, RecordsRefusedError, error_for, name_of
from ottla.model import Buffer
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
    from ottla.broker.coordinators.elsewhere import Verdicts

ZSTD_SINCE = 7
"""From this version on batches may be compressed by zstd (KIP-110)."""
IDS_SINCE = 13
"""From this version on topics have ids instead of names."""
ACKS_ALL = -1
ACKS = (ACKS_ALL, 0, 1)
ProduceOutcome = Appended | KafkaError | CorruptRecordError
Unflushed = tuple[Partition, PartitionProduceResponse]
Uncommitted = tuple[Leadership, PartitionProduceResponse, int]
"""What must be committed, up to which offset, and where the outcome goes."""


def handle(node: BrokerNode, call: Call, request: ProduceRequest) -> ProduceResponse | Outcome:
    """Append and answer; with `flush.messages` set, once it is on the disk, with acks=all once it is committed."""
    if node.access is not None and is_denied(node.access, call, request):
        response = denied_response(request)
        return response if request.acks else no_answer(response)
    if node.coordinators is not None and request.transactional_id is not None:
        return append_verified(node, call, request)
    return append_all(node, call, request, {})


def append_verified(node: BrokerNode, call: Call, request: ProduceRequest) -> ProduceResponse | Outcome:
    """The same once a coordinator elsewhere has said which partitions are in the transaction."""

    def go_on(verdicts: Verdicts) -> None:
        call.resume(lambda: append_all(node, call, request, verdicts))

    def allowed(topic: str) -> bool:
        return node.access is None or may_write(node.access, call, topic)

    inquiry = transactional_write.inquiry(node, request, call.version, allowed, go_on)
    if inquiry is None:
        return append_all(node, call, request, {})
    assert node.coordinators is not None
    keep_records(request)
    if node.coordinators.ask(inquiry):
        return Outcome.LATER
    return append_all(node, call, request, dict.fromkeys(inquiry.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))


def keep_records(request: ProduceRequest) -> None:
    """Hold the batches beyond the frame in which they came."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = bytes(data.records)


def append_all(node: BrokerNode, call: Call, request: ProduceRequest, verdicts: Verdicts) -> ProduceResponse | Outcome:
    """Append what may be, and answer in time."""
    unflushed: list[Unflushed] = []
    uncommitted: list[Uncommitted] = []
    response = ProduceResponse(
        [append_topic(node, call, request, topic, unflushed, uncommitted, verdicts) for topic in request.topic_data]
    )
    if not request.acks:
        return no_answer(response)
    if not unflushed:
        return settle(node, call, request.timeout_ms, response, uncommitted) if uncommitted else response
    then = partial(settle, node, call, request.timeout_ms, response, uncommitted)
    Flushing(call, unflushed, then).begin(node)
    return Outcome.LATER


def settle(
    node: BrokerNode,
    call: Call,
    timeout_ms: int,
    response: ProduceResponse,
    uncommitted: list[Uncommitted],
) -> ProduceResponse | Outcome:
    """The answer, once what was appended is committed, or its time is over: then who asks does not know what became of it.

    Many may wait here, and none of them keeps its request, which is as large as its records.
    """
    left = [each for each in uncommitted if not is_settled(each)]
    if not left:
        return response
    deadline = call.received + timeout_ms / 1000
    if node.waiting.closed or node.clock.monotonic() >= deadline:
        for _, result, end_offset in left:
            why = f"offset {end_offset - 1} was not committed within timeout.ms = {timeout_ms}"
            refuse(result, ErrorCode.REQUEST_TIMED_OUT, why)
        return response
    required: dict[Leadership, int] = {}
    for leadership, _, end_offset in left:
        required[leadership] = min(end_offset, required.get(leadership, end_offset))
    again = partial(call.resume, lambda: settle(node, call, timeout_ms, response, left))
    produce = WaitingProduce(required, again, call)
    call.is_appended = True
    node.waiting.add(produce, deadline)
    return Outcome.LATER


def is_settled(uncommitted: Uncommitted) -> bool:
    """Whether it is known what has become of a partition's batch; an error is put into the answer."""
    leadership, result, end_offset = uncommitted
    code = leadership.outcome(end_offset)
    if code:
        refuse(result, code, f"offset {end_offset - 1} was appended, and may be lost: {name_of(code)}")
    return code is not None or bool(result.error_code)


def no_answer(response: ProduceResponse) -> Outcome:
    """A producer with acks=0 reads no answers: where something went wrong it loses its connection, and so hears."""
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                why = partition.error_message or name_of(partition.error_code)
                raise HangUp(f"produce with acks=0 to {topic.name or topic.topic_id}-{partition.index} failed: {why}")
    return Outcome.SILENT


def is_denied(access: Access, call: Call, request: ProduceRequest) -> bool:
    """Whether it writes in a transaction whose id is not the client's to use."""
    transactional_id = request.transactional_id
    return transactional_id is not None and not access.allows(
        call, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    )


def denied_response(request: ProduceRequest) -> ProduceResponse:
    """The same for every partition: nothing of a transaction of somebody else's."""
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
    verdicts: Verdicts,
) -> TopicProduceResponse:
    """What goes to one topic."""
    name: str | None = data.name
    if call.version >= IDS_SINCE:
        name = node.partitions.topic_name(data.topic_id)
    results = []
    is_refused = node.access is not None and not may_write(node.access, call, name)
    for each in data.partition_data:
        result = PartitionProduceResponse(each.index, base_offset=-1)
        try:
            if is_refused:
                raise error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "WRITE is not allowed on this topic")
            partition = appendable(node, name, each.index, request)
            check_codec(each, call.version)
            last_offset = append(node, partition, each, result, request.transactional_id, call.version, verdicts)
            if partition.leadership is not None and request.acks == ACKS_ALL:
                uncommitted.append((partition.leadership, result, last_offset + 1))
            if must_flush_first(partition.log):
                unflushed.append((partition, result))
        except (KafkaError, CorruptRecordError) as error:
            note_outcome(result, error)
            if not is_refused:
                note_refusal(node, data.topic_id if name is None else name, each.index, each.records, error)
        results.append(result)
    return TopicProduceResponse(data.name, data.topic_id, results)


def may_write(access: Access, call: Call, name: str | None) -> bool:
    """Whether records may go to a topic; what has no name is refused for that."""
    return name is None or access.allows(call, Operation.WRITE, ResourceType.TOPIC, name)


def appendable(node: BrokerNode, name: str | None, index: int, request: ProduceRequest) -> Partition:
    """The partition, if this request may append to it."""
    if request.acks not in ACKS:
        raise error_for(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, it can be 0, 1 or -1 (all)")
    if name is None:
        raise error_for(ErrorCode.UNKNOWN_TOPIC_ID, "no topic has that id")
    partition = node.partitions.find(name, index)
    if partition is None:
        raise absent(node, name, index)
    if not partition.leads:
        raise error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"another broker leads {name}-{index}")
    if partition.internal:
        raise error_for(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is written by the broker alone")
    if request.acks == ACKS_ALL:
        ensure_enough_in_sync(partition)
    return partition


def ensure_enough_in_sync(partition: Partition) -> None:
    """KafkaError(NOT_ENOUGH_REPLICAS) where what is appended could not be committed."""
    leadership = partition.leadership
    if leadership is None:
        in_sync, least = partition.replicas_in_sync, partition.min_insync_replicas
    else:
        in_sync, least = len(leadership.machine.assignment.in_sync), leadership.machine.assignment.quorum
    if in_sync < least:
        raise error_for(ErrorCode.NOT_ENOUGH_REPLICAS, f"{in_sync} in sync, min.insync.replicas is {least}")


def absent(node: BrokerNode, name: str, index: int) -> KafkaError:
    """Why there is no such partition."""
    code = node.topics.name_error(name) or node.partitions.absent_code(name, index)
    return error_for(code, f"there is no partition {name}-{index}")


def check_codec(data: PartitionProduceData, version: int) -> None:
    """Refuse what nobody can decompress, and what readers of that time cannot."""
    if data.records is None or len(data.records) < HEADER_BYTES:
        return
    codec = data.records[FLAGS_POSITION] & CODEC_MASK
    if codec > Codec.ZSTD:
        raise error_for(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"{codec} is no codec, the last one is 4 (zstd)")
    if codec == Codec.ZSTD and version < ZSTD_SINCE:
        raise error_for(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd takes Produce v{ZSTD_SINCE}, not v{version}")


def append(
    node: BrokerNode,
    partition: Partition,
    data: PartitionProduceData,
    result: PartitionProduceResponse,
    transactional_id: str | None,
    version: int,
    verdicts: Verdicts,
) -> int:
    """Append a batch and note where it went; the offset of its last record."""
    records: Buffer | None = data.records
    if records is None or len(records) < HEADER_BYTES:
        raise error_for(ErrorCode.INVALID_RECORD, "a partition takes one record batch for each request, there is none")
    if int.from_bytes(records[LENGTH_FIELD], "big") + PREFIX_BYTES < len(records):
        raise error_for(ErrorCode.INVALID_RECORD, "a partition takes one record batch for each request, there are more")
    if records[FLAGS_POSITION] & TRANSACTIONAL:
        if transactional_id is None:
            raise error_for(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "the batch is part of a transaction, and the request names no transactional.id",
            )
        transactional_write.check(node, partition, records, transactional_id, version, verdicts)
    if node.refused_sequences:
        ensure_in_sequence(node, partition, records)
    appended = node.append(partition, records)
    note_outcome(result, appended)
    return appended.last_offset


def ensure_in_sequence(node: BrokerNode, partition: Partition, records: Buffer) -> None:
    """Raise KafkaError(OUT_OF_ORDER_SEQUENCE_NUMBER) if an earlier batch was refused and has to come again first."""
    place, entries = partition.topic_partition, partition.log.producers.entries
    node.refused_sequences.ensure_lowest(place, partition.topic_id, records, entries, node.clock.monotonic())


def note_refusal(
    node: BrokerNode,
    topic: str | uuid.UUID,
    index: int,
    records: Buffer | None,
    error: KafkaError | CorruptRecordError,
) -> None:
    """Remember the sequence of a batch that was refused and that its client sends again."""
    code = error.code if isinstance(error, KafkaError) else ErrorCode.CORRUPT_MESSAGE
    node.refused_sequences.note(topic, index, records, code, node.clock.monotonic())


def note_outcome(result: PartitionProduceResponse, outcome: ProduceOutcome) -> None:
    """Say where a batch went, or why it did not."""
    if isinstance(outcome, Appended):
        result.base_offset = outcome.base_offset
        result.log_append_time_ms = outcome.log_append_time_ms
        result.log_start_offset = outcome.log_start_offset
        return
    if isinstance(outcome, KafkaError):
        refuse(result, outcome.code, outcome.reason)
    else:
        refuse(result, ErrorCode.CORRUPT_MESSAGE, str(outcome))
    if isinstance(outcome, RecordsRefusedError):
        result.record_errors = [BatchIndexAndErrorMessage(index, fault) for index, fault in outcome.faults]


def response_of(request: ProduceRequest, outcomes: Iterable[ProduceOutcome]) -> ProduceResponse:
    """The answer to a request of which it is known what became of each batch."""
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
    """One partition's part in an answer."""
    result = PartitionProduceResponse(index, base_offset=-1)
    note_outcome(result, outcome)
    return result


def refuse(result: PartitionProduceResponse, code: int, message: str) -> None:
    """Turn a result into an error."""
    result.error_code = code
    result.base_offset = -1
    result.error_message = message


class Flushing:
    """A produce request whose records are on their way to the disk."""

    def __init__(self, call: Call, unflushed: list[Unflushed], then: Callable[[], ProduceResponse | Outcome]) -> None:
        self._call = call
        self._then = then
        self._unflushed = unflushed
        self._left = len(unflushed)

    def begin(self, node: BrokerNode) -> None:
        """Flush what must be flushed."""
        for partition, result in self._unflushed:
            node.flusher.flush(partition, lambda error, result=result: self._flushed(result, error))  # type: ignore[misc]

    def _flushed(self, result: PartitionProduceResponse, error: BaseException | None) -> None:
        if error is not None:
            refuse(result, ErrorCode.KAFKA_STORAGE_ERROR, error.reason if isinstance(error, KafkaError) else str(error))
        self._left -= 1
        if not self._left:
            self._call.resume(self._then)
