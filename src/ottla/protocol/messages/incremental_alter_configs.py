"""IncrementalAlterConfigs: change single configs of a resource (KIP-339)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int8, Int16, Int32, Message, String, message, struct

SET, DELETE, APPEND, SUBTRACT = range(4)
"""The operations on a config; the last two are for lists."""


@struct
class AlterableConfig:
    name: String = ""
    config_operation: Int8 = SET
    value: String | None = None


@struct
class AlterConfigsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: Sequence[AlterableConfig] = ()


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest(Message):
    resources: Sequence[AlterConfigsResource] = ()
    validate_only: Bool = False


@struct
class AlterConfigsResourceResponse:
    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""


@message(key=44, versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: Int32 = 0
    responses: Sequence[AlterConfigsResourceResponse] = ()
