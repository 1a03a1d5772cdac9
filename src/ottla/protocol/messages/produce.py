"""Produce: append record batches to partitions."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import (
    ZERO_UUID,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Uuid,
    message,
    since,
    struct,
    tagged,
)


@struct
class PartitionProduceData:
    index: Int32 = 0
    records: Records | None = None


@struct
class TopicProduceData:
    """The data of one topic: by name up to v12, by id after."""

    name: String = since(0, until=12, default="", ignorable=True)
    topic_id: Uuid = since(13, default=ZERO_UUID, ignorable=True)
    partition_data: Sequence[PartitionProduceData] = ()


@message(key=0, versions="3-13", flexible="9+")
class ProduceRequest(Message):
    transactional_id: String | None = None
    acks: Int16 = 0
    """The acknowledgements to wait for: 0 for no response, 1 for the leader, -1 for all in-sync replicas."""
    timeout_ms: Int32 = 0
    topic_data: Sequence[TopicProduceData] = ()


@struct
class BatchIndexAndErrorMessage:
    """A rejected record, by its index in the batch."""

    batch_index: Int32 = 0
    batch_index_error_message: String | None = None


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@struct
class PartitionProduceResponse:
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1
    log_start_offset: Int64 = since(5, default=-1, ignorable=True)
    record_errors: Sequence[BatchIndexAndErrorMessage] = since(8, default=(), ignorable=True)
    error_message: String | None = since(8, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch | None = tagged(0, since=10, default=None)


@struct
class TopicProduceResponse:
    name: String = since(0, until=12, default="", ignorable=True)
    topic_id: Uuid = since(13, default=ZERO_UUID, ignorable=True)
    partition_responses: Sequence[PartitionProduceResponse] = ()


@struct
class NodeEndpoint:
    """The addresses of the leaders in the partitions."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


@message(key=0, versions="3-13", flexible="9+")
class ProduceResponse(Message):
    responses: Sequence[TopicProduceResponse] = ()
    throttle_time_ms: Int32 = 0
    node_endpoints: Sequence[NodeEndpoint] = tagged(0, since=10, default=())
