"""AlterClientQuotas: set or remove quotas of entities."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.describe_client_quotas import EntityData
from ottla.protocol.schema import Bool, Float64, Int16, Int32, Message, String, message, struct


@struct
class OpData:
    key: String = ""
    value: Float64 = 0.0
    remove: Bool = False


@struct
class RequestEntryData:
    entity: Sequence[EntityData] = ()
    ops: Sequence[OpData] = ()


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Message):
    entries: Sequence[RequestEntryData] = ()
    validate_only: Bool = False


@struct
class EntryData:
    error_code: Int16 = 0
    error_message: String | None = ""
    entity: Sequence[EntityData] = ()


@message(key=49, versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Message):
    throttle_time_ms: Int32 = 0
    entries: Sequence[EntryData] = ()
