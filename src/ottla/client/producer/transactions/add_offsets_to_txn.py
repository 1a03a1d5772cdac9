"""Takes a group's offsets into the transaction: what brokers want before version 2."""

from __future__ import annotations

from ottla.client.metadata.coordinators import TRANSACTION
from ottla.client.producer.producer_id_and_epoch import ProducerIdAndEpoch
from ottla.client.producer.transactions.txn_request import Priority, TxnRequest
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest


class AddOffsetsToTxn(TxnRequest):
    """The transaction's coordinator is told before the group's."""

    NAME = "AddOffsetsToTxn"
    PRIORITY = Priority.ADD_PARTITIONS_OR_OFFSETS
    JOINS = True

    def __init__(self, transactional_id: str, producer: ProducerIdAndEpoch, group_id: str) -> None:
        message = AddOffsetsToTxnRequest(transactional_id, *producer, group_id)
        super().__init__(message, (TRANSACTION, transactional_id))
