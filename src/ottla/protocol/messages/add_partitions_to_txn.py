"""AddPartitionsToTxn: add partitions to a transaction; clients use versions up to 3, brokers later ones (KIP-890)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int16, Int32, Int64, Message, String, message, since, struct


@struct
class AddPartitionsToTxnTopic:
    name: String = ""
    partitions: Sequence[Int32] = ()


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: Bool = False
    """True to only check that the partitions are in the transaction."""
    topics: Sequence[AddPartitionsToTxnTopic] = ()


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(Message):
    transactions: Sequence[AddPartitionsToTxnTransaction] = since(4, default=())
    v3_and_below_transactional_id: String = since(0, until=3, default="")
    v3_and_below_producer_id: Int64 = since(0, until=3, default=0)
    v3_and_below_producer_epoch: Int16 = since(0, until=3, default=0)
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = since(0, until=3, default=())


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


@struct
class AddPartitionsToTxnTopicResult:
    name: String = ""
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ()


@struct
class AddPartitionsToTxnResult:
    transactional_id: String = ""
    topic_results: Sequence[AddPartitionsToTxnTopicResult] = ()


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = since(4, default=0, ignorable=True)
    results_by_transaction: Sequence[AddPartitionsToTxnResult] = since(4, default=())
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = since(0, until=3, default=())
