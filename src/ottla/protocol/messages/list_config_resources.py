"""ListConfigResources: list resources with configs; v0 supports only client metrics (KIP-1142)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int8, Int16, Int32, Message, String, message, since, struct


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesRequest(Message):
    resource_types: Sequence[Int8] = since(1, default=())
    """An empty list requests every type."""


@struct
class ConfigResource:
    resource_name: String = ""
    resource_type: Int8 = since(1, default=16, ignorable=True)
    """Numbers as in DescribeConfigs."""


@message(key=74, versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: Sequence[ConfigResource] = ()
