"""DescribeProducers: the producers with a producer id that write to partitions (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int16, Int32, Int64, Message, String, message, struct


@struct
class TopicRequest:
    name: String = ""
    partition_indexes: Sequence[Int32] = ()


@message(key=61, versions="0", flexible="0+")
class DescribeProducersRequest(Message):
    topics: Sequence[TopicRequest] = ()


@struct
class ProducerState:
    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1
    """-1 without an open transaction."""


@struct
class PartitionResponse:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: Sequence[ProducerState] = ()


@struct
class TopicResponse:
    name: String = ""
    partitions: Sequence[PartitionResponse] = ()


@message(key=61, versions="0", flexible="0+")
class DescribeProducersResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: Sequence[TopicResponse] = ()
