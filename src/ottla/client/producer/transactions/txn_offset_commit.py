"""Promises a group's offsets, which count once the transaction commits (KIP-447)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.metadata.coordinators import GROUP
from ottla.client.producer.producer_id_and_epoch import ProducerIdAndEpoch
from ottla.client.producer.transactions.txn_request import Failure, Priority, TxnRequest
from ottla.errors import ErrorCode
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata

LAST_VERSION_BEFORE_V2 = 4
"""From the next one on the broker takes the offsets into the transaction itself (KIP-890)."""


class TxnOffsetCommit(TxnRequest):
    """The group's coordinator refuses what comes from a generation that is over."""

    NAME = "TxnOffsetCommit"
    PRIORITY = Priority.ADD_PARTITIONS_OR_OFFSETS

    def __init__(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        group: ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
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
            [TxnOffsetCommitRequestTopic(name, parts) for name, parts in topics.items()],
        )
        super().__init__(message, (GROUP, group.group_id), None if v2 else LAST_VERSION_BEFORE_V2)

    def failures(self, answer: Any) -> list[Failure]:
        return [
            (f"{topic.name}-{each.partition_index}", each.error_code)
            for topic in answer.topics
            for each in topic.partitions
            if each.error_code != ErrorCode.NONE
        ]
