"""Metadata: brokers, topics, and the leaders of partitions."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Bool, Int16, Int32, Message, String, Uuid, message, since, struct

NO_OPERATIONS = -(2**31)
"""The value of `…_authorized_operations` if not requested."""


@struct
class MetadataRequestTopic:
    """A topic by name, or by id from v10 on."""

    topic_id: Uuid = since(10, default=ZERO_UUID, ignorable=True)
    name: String | None = since(0, default="", nullable_since=10)


@message(key=3, versions="0-13", flexible="9+")
class MetadataRequest(Message):
    topics: Sequence[MetadataRequestTopic] | None = since(0, default=(), nullable_since=1)
    """None requests every topic, also an empty list in v0; in later versions an empty list requests none."""
    allow_auto_topic_creation: Bool = since(4, default=True)
    include_cluster_authorized_operations: Bool = since(8, until=10, default=False)
    include_topic_authorized_operations: Bool = since(8, default=False)


@struct
class MetadataResponseBroker:
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = since(1, default=None, ignorable=True)


@struct
class MetadataResponsePartition:
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = since(7, default=-1, ignorable=True)
    replica_nodes: Sequence[Int32] = ()
    isr_nodes: Sequence[Int32] = ()
    offline_replicas: Sequence[Int32] = since(5, default=(), ignorable=True)


@struct
class MetadataResponseTopic:
    error_code: Int16 = 0
    name: String | None = since(0, default="", nullable_since=12)
    """None for an unknown id."""
    topic_id: Uuid = since(10, default=ZERO_UUID, ignorable=True)
    is_internal: Bool = since(1, default=False, ignorable=True)
    partitions: Sequence[MetadataResponsePartition] = ()
    topic_authorized_operations: Int32 = since(8, default=NO_OPERATIONS)


@message(key=3, versions="0-13", flexible="9+")
class MetadataResponse(Message):
    throttle_time_ms: Int32 = since(3, default=0, ignorable=True)
    brokers: Sequence[MetadataResponseBroker] = ()
    cluster_id: String | None = since(2, default=None, ignorable=True)
    controller_id: Int32 = since(1, default=-1, ignorable=True)
    topics: Sequence[MetadataResponseTopic] = ()
    cluster_authorized_operations: Int32 = since(8, until=10, default=NO_OPERATIONS)
    error_code: Int16 = since(13, default=0, ignorable=True)
