"""Verification of transactional batches: the partition must be part of the transaction (KIP-890).

With transactions of version 2 the broker adds the partition at its first batch; older clients have added it before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.state_machines.runtime import PendingReply
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import Buffer, TopicPartition
from ottla.protocol.messages.produce import ProduceRequest
from ottla.records.batch import FLAGS_POSITION, HEADER_BYTES, TRANSACTIONAL, BatchHeader, parse_header
from ottla.storage.producers.producer_entry import ProducerEntry

if TYPE_CHECKING:
    from ottla.broker.coordinators.remote_coordinators import Verification, VerificationCodes

ADDS_SINCE = 12
"""From this version of Produce on the broker adds the partition to the transaction."""
ABORTABLE_SINCE = 11
"""From this version on clients know TRANSACTION_ABORTABLE."""
UNASKED = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)
"""Codes of a remote coordinator, or of the connection to it, that are not about the transaction."""
TEXTS = {
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the transactional id belongs to another producer id",
    ErrorCode.INVALID_PRODUCER_EPOCH: "another producer took over this transactional id, or its transaction timed out",
    ErrorCode.CONCURRENT_TRANSACTIONS: "the last transaction of this producer is still being ended",
    ErrorCode.NOT_ENOUGH_REPLICAS: "its previous transaction is still being completed, or its coordinator cannot be reached",
    ErrorCode.INVALID_TXN_STATE: "the transaction does not know this partition yet",
    ErrorCode.TRANSACTION_ABORTABLE: "the transaction does not know this partition yet",
}


def verification_for(
    node: BrokerNode,
    request: ProduceRequest,
    version: int,
    may_write: Callable[[str], bool],
    done: Callable[[VerificationCodes], None],
) -> Verification | None:
    """Return the request to a remote coordinator that must precede the append; None if all is known.

    Topics that the client may not write to are left out: every partition of a transaction receives its marker.
    """
    if node.coordinators is None or request.transactional_id is None or not is_verified(node, version):
        return None
    from ottla.broker.coordinators.remote_coordinators import Verification  # only where there is a cluster

    unknown = {
        partition.topic_partition: header
        for partition, header in transactional_batches(node, request)
        if not is_in_transaction(partition, header) and may_write(partition.topic_partition.topic)
    }
    if not unknown:
        return None
    first = next(iter(unknown.values()))
    # Batches of another producer are not verified, and thus rejected.
    same = frozenset(place for place, header in unknown.items() if belongs_to_same_transaction(header, first))
    verify_only = version < ADDS_SINCE
    return Verification(request.transactional_id, first.producer_id, first.producer_epoch, same, verify_only, done)


def belongs_to_same_transaction(header: BatchHeader, other: BatchHeader) -> bool:
    """Return True if two batches are of one producer epoch."""
    return (header.producer_id, header.producer_epoch) == (other.producer_id, other.producer_epoch)


def transactional_batches(node: BrokerNode, request: ProduceRequest) -> Iterator[tuple[Partition, BatchHeader]]:
    """Yield the batches for partitions that this broker leads."""
    for topic in request.topic_data:
        name = topic.name or node.topics.name_of(topic.topic_id)
        for data in topic.partition_data:
            partition = None if name is None else node.partitions.find(name, data.index)
            records = data.records
            if partition is None or not partition.leads or records is None or len(records) < HEADER_BYTES:
                continue
            if records[FLAGS_POSITION] & TRANSACTIONAL:
                yield partition, parse_header(records)


def is_verified(node: BrokerNode, version: int) -> bool:
    """Return True if the partition must be verified with the coordinator."""
    return version >= ADDS_SINCE or node.config.transaction_partition_verification_enable


def check_write(
    node: BrokerNode,
    partition: Partition,
    records: Buffer,
    transactional_id: str,
    version: int,
    verdicts: VerificationCodes,
) -> None:
    """Raise KafkaError if a batch is not part of a transaction. `verdicts` are the codes of a remote coordinator."""
    if not is_verified(node, version):
        return
    header = parse_header(records)
    if is_in_transaction(partition, header):
        return
    if node.coordinators is None:
        code = code_for(node, partition, header, transactional_id, version)
    else:
        code = map_verification(verdicts.get(partition.topic_partition, ErrorCode.INVALID_TXN_STATE))
    if code:
        known = map_code(code, version)
        raise error_for(known, f"transactional.id {transactional_id!r}: {TEXTS.get(known, 'try again')}")
    if version >= ADDS_SINCE:
        ensure_starts_at_zero(partition.log.producers.entries.get(header.producer_id), header)


def ensure_starts_at_zero(entry: ProducerEntry | None, header: BatchHeader) -> None:
    """Raise OUT_OF_ORDER_SEQUENCE_NUMBER for the first batch of a version 2 transaction in a partition, if it is not at sequence 0.

    Each transaction of that version has an epoch of its own, with sequences from 0 on. The log checks producers that it
    knows.
    """
    if entry is None and header.base_sequence:
        raise error_for(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id}, epoch {header.producer_epoch}: sequence {header.base_sequence} came where a "
            "transaction begins, which has to be sequence 0",
        )


def is_in_transaction(partition: Partition, header: BatchHeader) -> bool:
    """Return True if this producer has an open transaction in the partition, which is thus verified."""
    entry = partition.log.producers.entries.get(header.producer_id)
    return entry is not None and entry.transaction_start >= 0 and entry.epoch == header.producer_epoch


def code_for(node: BrokerNode, partition: Partition, header: BatchHeader, transactional_id: str, version: int) -> int:
    """Return the code of the local coordinator."""
    places = frozenset({partition.topic_partition})
    return code_here(node, transactional_id, header.producer_id, header.producer_epoch, places, version < ADDS_SINCE)


def code_here(
    node: BrokerNode,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    places: frozenset[TopicPartition],
    verify_only: bool,
) -> int:
    """Return the code of the local coordinator of a broker without a cluster, which never waits."""
    try:
        word = node.transactions.add_or_verify_partitions(
            transactional_id, producer_id, epoch, places, verify_only=verify_only
        )
    except KafkaError as error:
        return error.code
    assert not isinstance(word, PendingReply), "without replicas there is nothing to wait for"
    return word


def map_verification(code: int) -> int:
    """Return a code that producers of any version retry if the coordinator could not be asked.

    It must not cause a metadata refresh.
    """
    return ErrorCode.NOT_ENOUGH_REPLICAS if code in UNASKED else code


def map_code(code: int, version: int) -> ErrorCode:
    """Return a code of a request to the coordinator as the producer's version of Produce knows it."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    # Before KIP-890 no producer expected these codes here; this one makes it retry.
    retriable = (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    )
    if code in retriable and version < ADDS_SINCE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode(code)
