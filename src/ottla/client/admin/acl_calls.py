"""Create, describe and delete ACLs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.acl import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    AclBinding,
    AclBindingFilter,
)
from ottla.client.admin.admin_api_driver import AdminApiDriver, AdminQuery, lookup_any_broker, raise_first
from ottla.client.interface.arguments import checked_list, checked_text
from ottla.config import unknown
from ottla.errors import KafkaError, error_for
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_acls import DescribeAclsRequest

EXAMPLE = "[AclBinding('topic', 'flights', 'User:alice', 'read')]"
TABLES = {
    "resource_type": RESOURCE_TYPES,
    "operation": OPERATIONS,
    "permission": PERMISSIONS,
    "pattern_type": PATTERN_TYPES,
}
"""The fields of a rule with a fixed set of words."""
TEXTS = {"name": "flights", "principal": "User:alice", "host": "10.0.0.7"}
"""The fields of a rule with free text, and an example of each."""
EncodedAcl = tuple[int, str | None, int, str | None, str | None, int, int]


class AclCalls:
    """Implements the ACL methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def create_acls(self, acls: Iterable[AclBinding], timeout: float | None) -> None:
        wanted = [check_acl(each, AclBinding) for each in checked_list("acls", acls, EXAMPLE)]
        query: AdminQuery[AclBinding, bool] = AdminQuery(
            lookup_any_broker,
            lambda acls: CreateAclsRequest([AclCreation(*encode_acl(each)) for each in acls]),  # type: ignore[arg-type]
            lambda acls, message: {
                each: result_error(result) or True for each, result in zip(acls, message.results, strict=True)
            },
        )
        _, failed = self._driver.run_query(query, wanted, timeout)
        raise_first(failed)

    def describe_acls(self, wanted: AclBindingFilter, timeout: float | None) -> list[AclBinding]:
        query: AdminQuery[AclBindingFilter, list[AclBinding]] = AdminQuery(
            lookup_any_broker,
            lambda acls: DescribeAclsRequest(*encode_acl(acls[0])),
            lambda acls, message: {acls[0]: result_error(message) or parse_acls(message)},
        )
        found, failed = self._driver.run_query(query, [check_acl(wanted, AclBindingFilter)], timeout)
        raise_first(failed)
        return sorted(found[wanted])

    def delete_acls(self, filters: Iterable[AclBindingFilter], timeout: float | None) -> list[AclBinding]:
        wanted = [
            check_acl(each, AclBindingFilter)
            for each in checked_list("filters", filters, "[AclBindingFilter('topic', 'flights')]")
        ]
        query: AdminQuery[AclBindingFilter, list[AclBinding]] = AdminQuery(
            lookup_any_broker,
            lambda acls: DeleteAclsRequest([DeleteAclsFilter(*encode_acl(each)) for each in acls]),
            lambda acls, message: {
                each: result_error(result) or [parse_acl(acl) for acl in result.matching_acls if not acl.error_code]
                for each, result in zip(acls, message.filter_results, strict=True)
            },
        )
        found, failed = self._driver.run_query(query, wanted, timeout)
        raise_first(failed)
        return sorted({acl for acls in found.values() for acl in acls})


def check_acl(acl: Any, kind: type[Any]) -> Any:
    """Return the rule or filter. Raises ValueError if one of its words is unknown."""
    if not isinstance(acl, kind):
        raise ValueError(f"{acl!r} is not an {kind.__name__}: write {kind.__name__}('topic', 'flights', …)")
    for field, table in TABLES.items():
        word_for = getattr(acl, field)
        if word_for not in table:
            raise ValueError(unknown(field.replace("_", " "), str(word_for), list(table)))
    for field in TEXTS:
        text = getattr(acl, field)
        if text is not None or kind is AclBinding:
            checked_text(f"the {field} of {acl!r}", text, TEXTS[field])
    return acl


def encode_acl(acl: AclBinding | AclBindingFilter) -> EncodedAcl:
    """Return the fields in the order of the protocol."""
    return (
        RESOURCE_TYPES[acl.resource_type],
        acl.name,
        PATTERN_TYPES[acl.pattern_type],
        acl.principal,
        acl.host,
        OPERATIONS[acl.operation],
        PERMISSIONS[acl.permission],
    )


def result_error(result: Any) -> KafkaError | None:
    """Return the error of a result, or None."""
    return error_for(result.error_code, result.error_message or "") if result.error_code else None


def parse_acls(message: Any) -> list[AclBinding]:
    """Return the rules of a response, in which they are grouped by resource."""
    return [
        AclBinding(
            format_number(RESOURCE_TYPES, each.resource_type),
            each.resource_name,
            acl.principal,
            format_number(OPERATIONS, acl.operation),
            format_number(PERMISSIONS, acl.permission_type),
            format_number(PATTERN_TYPES, each.pattern_type),
            acl.host,
        )
        for each in message.resources
        for acl in each.acls
    ]


def parse_acl(acl: Any) -> AclBinding:
    """Return the rule of a deleted entry."""
    return AclBinding(
        format_number(RESOURCE_TYPES, acl.resource_type),
        acl.resource_name,
        acl.principal,
        format_number(OPERATIONS, acl.operation),
        format_number(PERMISSIONS, acl.permission_type),
        format_number(PATTERN_TYPES, acl.pattern_type),
        acl.host,
    )


def format_number(table: Mapping[str, int], number: int) -> str:
    """Return the word for a number, or the number as text if this client does not know it."""
    return next((name for name, known in table.items() if known == number), str(number))
