"""AlterPartition: a leader reports changed in-sync replicas to the controller (KIP-497)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int8, Int16, Int32, Int64, Message, Uuid, message, since, struct


@struct
class BrokerState:
    """An in-sync broker, with the epoch of its fetches (KIP-903)."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


@struct
class RequestPartitionData:
    partition_index: Int32 = 0
    leader_epoch: Int32 = 0
    new_isr: Sequence[Int32] = since(0, until=2, default=())
    new_isr_with_epochs: Sequence[BrokerState] = since(3, default=())
    leader_recovery_state: Int8 = 0
    """1 while the leader recovers from an unclean election."""
    partition_epoch: Int32 = 0
    """The partition epoch that the request is based on."""


@struct
class RequestTopicData:
    topic_id: Uuid = since(2, default=ZERO_UUID, ignorable=True)
    partitions: Sequence[RequestPartitionData] = ()


@message(key=56, versions="2-3", flexible="0+")
class AlterPartitionRequest(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: Sequence[RequestTopicData] = ()


@struct
class PartitionData:
    """The new state of the partition, or an error."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    isr: Sequence[Int32] = ()
    leader_recovery_state: Int8 = since(1, default=0, ignorable=True)
    partition_epoch: Int32 = 0


@struct
class TopicData:
    topic_id: Uuid = since(2, default=ZERO_UUID, ignorable=True)
    partitions: Sequence[PartitionData] = ()


@message(key=56, versions="2-3", flexible="0+")
class AlterPartitionResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: Sequence[TopicData] = ()
