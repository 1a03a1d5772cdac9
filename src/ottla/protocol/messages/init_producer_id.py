"""InitProducerId: assign a producer id and epoch, for idempotence and transactions (KIP-98)."""

from __future__ import annotations

from ottla.protocol.schema import Bool, Int16, Int32, Int64, Message, String, message, since


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdRequest(Message):
    transactional_id: String | None = None
    transaction_timeout_ms: Int32 = 0
    producer_id: Int64 = since(3, default=-1)
    producer_epoch: Int16 = since(3, default=-1)
    enable_2pc: Bool = since(6, default=False)
    keep_prepared_txn: Bool = since(6, default=False)


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Int64 = since(6, default=-1)
    ongoing_txn_producer_epoch: Int16 = since(6, default=-1)
