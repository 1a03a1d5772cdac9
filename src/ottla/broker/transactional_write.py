"""Whether a batch may be written within a transaction: its partition must take part in it (KIP-890).

Clients of version 2 leave it to the broker to take the partition into the transaction with the first batch; older ones
have said so before.
"""

from __future__ import annotations

from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partition import Partition
from ottla.coordination.transactions.transaction import V2
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import Buffer
from ottla.records.batch import BatchHeader, parse_header

ADDS_SINCE = 12
"""From this version of Produce on the broker takes the partition in."""
ABORTABLE_SINCE = 11
"""From this version on clients know TRANSACTION_ABORTABLE."""
TEXTS = {
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the transactional id belongs to another producer id",
    ErrorCode.INVALID_PRODUCER_EPOCH: "another producer took over this transactional id, or its transaction timed out",
    ErrorCode.CONCURRENT_TRANSACTIONS: "the last transaction of this producer is still being ended",
    ErrorCode.NOT_ENOUGH_REPLICAS: "the last transaction of this producer is still being ended",
    ErrorCode.INVALID_TXN_STATE: "the transaction does not know this partition yet",
    ErrorCode.TRANSACTION_ABORTABLE: "the transaction does not know this partition yet",
}


def check(node: BrokerNode, partition: Partition, records: Buffer, transactional_id: str, version: int) -> None:
    """Let the batch pass, or raise the KafkaError that says why not."""
    if version < ADDS_SINCE and not node.config.transaction_partition_verification_enable:
        return
    header = parse_header(records)
    if is_under_way(partition, header):
        return
    code = code_for(node, partition, header, transactional_id, version)
    if code:
        known = known_code(code, version)
        raise error_for(known, f"transactional.id {transactional_id!r}: {TEXTS.get(known, 'try again')}")


def is_under_way(partition: Partition, header: BatchHeader) -> bool:
    """Whether this producer has a transaction open here: then its partition is known to take part."""
    entry = partition.log.producers.entries.get(header.producer_id)
    return entry is not None and entry.transaction_start >= 0 and entry.epoch == header.producer_epoch


def code_for(node: BrokerNode, partition: Partition, header: BatchHeader, transactional_id: str, version: int) -> int:
    """What the coordinator says, who is here or is asked to come again; in a cluster he is elsewhere."""
    if node.brokers is not None:
        raise error_for(
            ErrorCode.INVALID_TXN_STATE,
            f"transactional.id {transactional_id!r}: this broker leads {partition.topic_partition} in a cluster, and takes part in no "
            "transactions there yet; let a broker of Kafka's lead what transactions write to",
        )
    places = frozenset({partition.topic_partition})
    about = (transactional_id, header.producer_id, header.producer_epoch)
    try:
        if version >= ADDS_SINCE:
            return node.transactions.add(*about, places, version=V2)
        return node.transactions.error_in(*about, places)
    except KafkaError as error:
        return error.code


def known_code(code: int, version: int) -> ErrorCode:
    """The code as producers of that version know it, from a request that is not the coordinator's."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    # Before KIP-890 no producer expected to hear these here; this one makes it try again.
    retriable = (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    )
    if code in retriable and version < ADDS_SINCE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode(code)
