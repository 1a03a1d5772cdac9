"""CreateAcls: add access rules."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.describe_acls import LITERAL
from ottla.protocol.schema import Int8, Int16, Int32, Message, String, message, struct


@struct
class AclCreation:
    resource_type: Int8 = 0
    resource_name: String = ""
    resource_pattern_type: Int8 = LITERAL
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message(key=30, versions="1-3", flexible="2+")
class CreateAclsRequest(Message):
    creations: Sequence[AclCreation] = ()


@struct
class AclCreationResult:
    error_code: Int16 = 0
    error_message: String | None = ""


@message(key=30, versions="1-3", flexible="2+")
class CreateAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: Sequence[AclCreationResult] = ()
