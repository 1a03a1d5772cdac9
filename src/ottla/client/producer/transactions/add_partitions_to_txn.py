"""Takes partitions into the transaction before anything is written there: what brokers want before version 2."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.client.metadata.coordinators import TRANSACTION
from ottla.client.producer.producer_id_and_epoch import ProducerIdAndEpoch
from ottla.client.producer.transactions.txn_request import Failure, Learner, Priority, TxnRequest
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic

LAST_CLIENT_VERSION = 3
"""Later ones are the brokers' own."""


class AddPartitionsToTxn(TxnRequest):
    """All of them, or none."""

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
        super().__init__(message, (TRANSACTION, transactional_id), LAST_CLIENT_VERSION)

    def failures(self, answer: Any) -> list[Failure]:
        results = [
            (f"{topic.name}-{each.partition_index}", each.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        ]
        failed = [failure for failure in results if failure[1] != ErrorCode.NONE]
        # The fault of one keeps the others out; that one is to be named.
        return [failure for failure in failed if failure[1] != ErrorCode.OPERATION_NOT_ATTEMPTED] or failed

    def succeed(self, answer: Any, learner: Learner) -> None:
        learner.learn_partitions(self.partitions)
