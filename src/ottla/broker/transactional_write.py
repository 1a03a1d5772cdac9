"""Whether a batch may be written within a transaction: its partition must take part in it (KIP-890).

Clients of version 2 leave it to the broker to take the partition into the transaction with the first batch; older ones
have said so before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ottla.broker.machines.runtime import Pending
from ottla.broker.node import BrokerNode
from ottla.broker.partitions.partition import Partition
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import Buffer, TopicPartition
from ottla.protocol.messages.produce import ProduceRequest
from ottla.records.batch import FLAGS_POSITION, HEADER_BYTES, TRANSACTIONAL, BatchHeader, parse_header
from ottla.storage.producers.producer_entry import ProducerEntry

if TYPE_CHECKING:
    from ottla.broker.coordinators.elsewhere import Inquiry, Verdicts

ADDS_SINCE = 12
"""From this version of Produce on the broker takes the partition in."""
ABORTABLE_SINCE = 11
"""From this version on clients know TRANSACTION_ABORTABLE."""
UNASKED = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)
"""What a coordinator elsewhere says, or the way to it, that is not about the transaction."""
TEXTS = {
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the transactional id belongs to another producer id",
    ErrorCode.INVALID_PRODUCER_EPOCH: "another producer took over this transactional id, or its transaction timed out",
    ErrorCode.CONCURRENT_TRANSACTIONS: "the last transaction of this producer is still being ended",
    ErrorCode.NOT_ENOUGH_REPLICAS: "its last transaction is still being ended, or its coordinator cannot be asked at present",
    ErrorCode.INVALID_TXN_STATE: "the transaction does not know this partition yet",
    ErrorCode.TRANSACTION_ABORTABLE: "the transaction does not know this partition yet",
}


def inquiry(
    node: BrokerNode,
    request: ProduceRequest,
    version: int,
    may_write: Callable[[str], bool],
    done: Callable[[Verdicts], None],
) -> Inquiry | None:
    """What a coordinator elsewhere must be asked before this can be appended; None where all is known.

    Nothing of topics to which the client may not write: what is taken into a transaction gets its marker.
    """
    if node.coordinators is None or request.transactional_id is None or not is_verified(node, version):
        return None
    from ottla.broker.coordinators.elsewhere import Inquiry  # only where there is a cluster

    unknown = {
        partition.topic_partition: header
        for partition, header in transactional_batches(node, request)
        if not is_under_way(partition, header) and may_write(partition.topic_partition.topic)
    }
    if not unknown:
        return None
    first = next(iter(unknown.values()))
    # Of batches of another producer nothing is asked, and so they are refused.
    same = frozenset(place for place, header in unknown.items() if is_of_same(header, first))
    verify_only = version < ADDS_SINCE
    return Inquiry(request.transactional_id, first.producer_id, first.producer_epoch, same, verify_only, done)


def is_of_same(header: BatchHeader, other: BatchHeader) -> bool:
    """Whether two batches are of one incarnation of a producer."""
    return (header.producer_id, header.producer_epoch) == (other.producer_id, other.producer_epoch)


def transactional_batches(node: BrokerNode, request: ProduceRequest) -> Iterator[tuple[Partition, BatchHeader]]:
    """Those that go to partitions that are led here."""
    for topic in request.topic_data:
        name = topic.name or node.partitions.topic_name(topic.topic_id)
        for data in topic.partition_data:
            partition = None if name is None else node.partitions.find(name, data.index)
            records = data.records
            if partition is None or not partition.leads or records is None or len(records) < HEADER_BYTES:
                continue
            if records[FLAGS_POSITION] & TRANSACTIONAL:
                yield partition, parse_header(records)


def is_verified(node: BrokerNode, version: int) -> bool:
    """Whether producers are not believed to have taken a partition in."""
    return version >= ADDS_SINCE or node.config.transaction_partition_verification_enable


def check(
    node: BrokerNode,
    partition: Partition,
    records: Buffer,
    transactional_id: str,
    version: int,
    verdicts: Verdicts,
) -> None:
    """Let the batch pass, or raise the KafkaError that says why not; `verdicts` are of a coordinator elsewhere."""
    if not is_verified(node, version):
        return
    header = parse_header(records)
    if is_under_way(partition, header):
        return
    if node.coordinators is None:
        code = code_for(node, partition, header, transactional_id, version)
    else:
        code = code_of_verdict(verdicts.get(partition.topic_partition, ErrorCode.INVALID_TXN_STATE))
    if code:
        known = known_code(code, version)
        raise error_for(known, f"transactional.id {transactional_id!r}: {TEXTS.get(known, 'try again')}")
    if version >= ADDS_SINCE:
        ensure_begins_at_zero(partition.log.producers.entries.get(header.producer_id), header)


def ensure_begins_at_zero(entry: ProducerEntry | None, header: BatchHeader) -> None:
    """Raise OUT_OF_ORDER_SEQUENCE_NUMBER for the first batch of a transaction of version 2 in a partition, if it is not at sequence 0.

    Each transaction of that version has an epoch of its own, in which sequences begin at 0. A producer that is known here is
    checked by the log.
    """
    if entry is None and header.base_sequence:
        raise error_for(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id}, epoch {header.producer_epoch}: sequence {header.base_sequence} came where a "
            "transaction begins, which has to be sequence 0",
        )


def is_under_way(partition: Partition, header: BatchHeader) -> bool:
    """Whether this producer has a transaction open here: then its partition is known to take part."""
    entry = partition.log.producers.entries.get(header.producer_id)
    return entry is not None and entry.transaction_start >= 0 and entry.epoch == header.producer_epoch


def code_for(node: BrokerNode, partition: Partition, header: BatchHeader, transactional_id: str, version: int) -> int:
    """What the coordinator says, who is here."""
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
    """What the coordinator says of a broker that is alone, and so at once."""
    try:
        word = node.transactions.take_part(transactional_id, producer_id, epoch, places, verify_only=verify_only)
    except KafkaError as error:
        return error.code
    assert not isinstance(word, Pending), "there are no copies to wait for"
    return word


def code_of_verdict(code: int) -> int:
    """What producers of any version try again where the coordinator could not be asked; it is no news about who leads."""
    return ErrorCode.NOT_ENOUGH_REPLICAS if code in UNASKED else code


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
