"""AddOffsetsToTxn: add a group's offsets to a transaction."""

from __future__ import annotations

from ottla.protocol.schema import Int16, Int32, Int64, Message, String, message


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Message):
    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: String = ""


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
