"""AllocateProducerIds: a broker requests a block of producer ids from the controller (KIP-730)."""

from __future__ import annotations

from ottla.protocol.schema import Int16, Int32, Int64, Message, message


@message(key=67, versions="0", flexible="0+")
class AllocateProducerIdsRequest(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


@message(key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id_start: Int64 = 0
    producer_id_len: Int32 = 0
