"""DescribeAcls: list access rules."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int8, Int16, Int32, Message, String, message, struct

LITERAL = 3
"""The pattern type for a literal name."""


@message(key=29, versions="1-3", flexible="2+")
class DescribeAclsRequest(Message):
    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    """None matches every name; also for principal and host."""
    pattern_type_filter: Int8 = LITERAL
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@struct
class AclDescription:
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


@struct
class DescribeAclsResource:
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = LITERAL
    acls: Sequence[AclDescription] = ()


@message(key=29, versions="1-3", flexible="2+")
class DescribeAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    resources: Sequence[DescribeAclsResource] = ()
