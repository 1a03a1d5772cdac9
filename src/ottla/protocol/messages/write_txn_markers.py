"""WriteTxnMarkers: the transaction coordinator sends markers to the leaders of partitions."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int8, Int16, Int32, Int64, Message, String, message, since, struct


@struct
class WritableTxnMarkerTopic:
    name: String = ""
    partition_indexes: Sequence[Int32] = ()


@struct
class WritableTxnMarker:
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    transaction_result: Bool = False
    """True for commit."""
    topics: Sequence[WritableTxnMarkerTopic] = ()
    coordinator_epoch: Int32 = 0
    transaction_version: Int8 = since(2, default=0, ignorable=True)


@message(key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersRequest(Message):
    markers: Sequence[WritableTxnMarker] = ()


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: Int32 = 0
    error_code: Int16 = 0


@struct
class WritableTxnMarkerTopicResult:
    name: String = ""
    partitions: Sequence[WritableTxnMarkerPartitionResult] = ()


@struct
class WritableTxnMarkerResult:
    producer_id: Int64 = 0
    topics: Sequence[WritableTxnMarkerTopicResult] = ()


@message(key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse(Message):
    markers: Sequence[WritableTxnMarkerResult] = ()
