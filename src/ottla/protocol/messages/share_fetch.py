"""ShareFetch: acquire records for a member of a share group, and acknowledge earlier ones (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Uuid,
    message,
    part,
    since,
    struct,
)


@struct
class AcknowledgementBatch:
    """Acknowledgements of consecutive offsets, both ends included."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    acknowledge_types: Sequence[Int8] = ()
    """One for each offset, or a single one for all: 0 gap, 1 accept, 2 release, 3 reject, 4 renew (KIP-1222)."""


@struct
class FetchPartition:
    partition_index: Int32 = 0
    acknowledgement_batches: Sequence[AcknowledgementBatch] = ()


@struct
class FetchTopic:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[FetchPartition] = ()


@struct
class ForgottenTopic:
    """Partitions to remove from the share session."""

    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[Int32] = ()


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchRequest(Message):
    group_id: String | None = None
    member_id: String | None = ""
    share_session_epoch: Int32 = 0
    """0 to open a share session, -1 to close it, else one more than in the previous request."""
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 2**31 - 1
    max_records: Int32 = 0
    """A limit that the end of a record batch may exceed, unless `share_acquire_mode` is 1."""
    batch_size: Int32 = 0
    """The preferred number of records in each range of acquired records."""
    share_acquire_mode: Int8 = since(2, default=0, ignorable=True)
    """0 for whole record batches, 1 for at most `max_records` (KIP-1206)."""
    is_renew_ack: Bool = since(2, default=False)
    """True if the request renews acquisition locks (KIP-1222); such a request fetches nothing."""
    topics: Sequence[FetchTopic] = ()
    forgotten_topics_data: Sequence[ForgottenTopic] = ()


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0


@struct
class AcquiredRecords:
    """A range of acquired offsets, both ends included, with the number of their deliveries so far."""

    first_offset: Int64 = 0
    last_offset: Int64 = 0
    delivery_count: Int16 = 0


@struct
class PartitionData:
    partition_index: Int32 = 0
    error_code: Int16 = 0
    """The error of the fetch."""
    error_message: String | None = None
    acknowledge_error_code: Int16 = 0
    acknowledge_error_message: String | None = None
    current_leader: LeaderIdAndEpoch = part(LeaderIdAndEpoch)
    records: Records = b""
    acquired_records: Sequence[AcquiredRecords] = ()


@struct
class ShareFetchableTopicResponse:
    topic_id: Uuid = ZERO_UUID
    partitions: Sequence[PartitionData] = ()


@struct
class NodeEndpoint:
    """The addresses of the leaders in the partitions."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = 0
    responses: Sequence[ShareFetchableTopicResponse] = ()
    node_endpoints: Sequence[NodeEndpoint] = ()
