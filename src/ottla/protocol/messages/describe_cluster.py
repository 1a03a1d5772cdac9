"""DescribeCluster: the brokers, or the controllers, of a cluster (KIP-700)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.metadata import NO_OPERATIONS
from ottla.protocol.schema import Bool, Int8, Int16, Int32, Message, String, message, since, struct


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: Bool = False
    endpoint_type: Int8 = since(1, default=1)
    """1 for brokers, 2 for controllers (KIP-919)."""
    include_fenced_brokers: Bool = since(2, default=False)
    """True to include registered brokers that are fenced (KIP-1073)."""


@struct
class DescribeClusterBroker:
    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None
    is_fenced: Bool = since(2, default=False)


@message(key=60, versions="0-2", flexible="0+")
class DescribeClusterResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Int8 = since(1, default=1)
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: Sequence[DescribeClusterBroker] = ()
    cluster_authorized_operations: Int32 = NO_OPERATIONS
