"""DescribeClientQuotas: list quotas."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Float64, Int8, Int16, Int32, Message, String, message, struct


@struct
class ComponentData:
    entity_type: String = ""
    match_type: Int8 = 0
    """0 for the name in `match`, 1 for the default, 2 for all of the type."""
    match: String | None = ""


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasRequest(Message):
    components: Sequence[ComponentData] = ()
    strict: Bool = False
    """True to exclude entities that also have other types."""


@struct
class EntityData:
    entity_type: String = ""
    entity_name: String | None = ""


@struct
class ValueData:
    key: String = ""
    value: Float64 = 0.0


@struct
class EntryData:
    entity: Sequence[EntityData] = ()
    values: Sequence[ValueData] = ()


@message(key=48, versions="0-1", flexible="1+")
class DescribeClientQuotasResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    entries: Sequence[EntryData] | None = ()
