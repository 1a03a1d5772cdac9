"""EndTxn: commit or abort a transaction."""

from __future__ import annotations

from ottla.protocol.schema import Bool, Int16, Int32, Int64, Message, String, message, since


@message(key=26, versions="0-5", flexible="3+")
class EndTxnRequest(Message):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: Bool = False


@message(key=26, versions="0-5", flexible="3+")
class EndTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = since(5, default=-1, ignorable=True)
    """For the next transaction; -1 if id and epoch are unchanged."""
    producer_epoch: Int16 = since(5, default=-1, ignorable=True)
