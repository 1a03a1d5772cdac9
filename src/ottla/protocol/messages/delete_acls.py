"""DeleteAcls: delete access rules."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.describe_acls import LITERAL
from ottla.protocol.schema import Int8, Int16, Int32, Message, String, message, struct


@struct
class DeleteAclsFilter:
    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    pattern_type_filter: Int8 = LITERAL
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@message(key=31, versions="1-3", flexible="2+")
class DeleteAclsRequest(Message):
    filters: Sequence[DeleteAclsFilter] = ()


@struct
class DeleteAclsMatchingAcl:
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = LITERAL
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@struct
class DeleteAclsFilterResult:
    error_code: Int16 = 0
    error_message: String | None = ""
    matching_acls: Sequence[DeleteAclsMatchingAcl] = ()


@message(key=31, versions="1-3", flexible="2+")
class DeleteAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    filter_results: Sequence[DeleteAclsFilterResult] = ()
