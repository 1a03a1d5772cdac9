"""AlterConfigs: replace all configs of a resource; configs that are not given are reset to their defaults."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int8, Int16, Int32, Message, String, message, struct


@struct
class AlterableConfig:
    name: String = ""
    value: String | None = None


@struct
class AlterConfigsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: Sequence[AlterableConfig] = ()


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsRequest(Message):
    resources: Sequence[AlterConfigsResource] = ()
    validate_only: Bool = False


@struct
class AlterConfigsResourceResponse:
    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""


@message(key=33, versions="0-2", flexible="2+")
class AlterConfigsResponse(Message):
    throttle_time_ms: Int32 = 0
    responses: Sequence[AlterConfigsResourceResponse] = ()
