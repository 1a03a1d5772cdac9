"""Rules of who may do what: made, found, deleted."""

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
from ottla.client.admin.admin_api_driver import AdminApiDriver, Question, any_broker, raise_first
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
"""The fields of a rule that are one of a few words."""
TEXTS = {"name": "flights", "principal": "User:alice", "host": "10.0.0.7"}
"""And those that are any text, with an example."""
Numbers = tuple[int, str | None, int, str | None, str | None, int, int]


class AclCalls:
    """What an admin does with rules; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def create_acls(self, acls: Iterable[AclBinding], timeout: float | None) -> None:
        wanted = [checked(each, AclBinding) for each in checked_list("acls", acls, EXAMPLE)]
        question: Question[AclBinding, bool] = Question(
            any_broker,
            lambda some: CreateAclsRequest([AclCreation(*numbers(each)) for each in some]),  # type: ignore[arg-type]
            lambda some, message: {
                each: refusal(result) or True for each, result in zip(some, message.results, strict=True)
            },
        )
        _, failed = self._driver.ask(question, wanted, timeout)
        raise_first(failed)

    def describe_acls(self, wanted: AclBindingFilter, timeout: float | None) -> list[AclBinding]:
        question: Question[AclBindingFilter, list[AclBinding]] = Question(
            any_broker,
            lambda some: DescribeAclsRequest(*numbers(some[0])),
            lambda some, message: {some[0]: refusal(message) or described(message)},
        )
        found, failed = self._driver.ask(question, [checked(wanted, AclBindingFilter)], timeout)
        raise_first(failed)
        return sorted(found[wanted])

    def delete_acls(self, filters: Iterable[AclBindingFilter], timeout: float | None) -> list[AclBinding]:
        wanted = [
            checked(each, AclBindingFilter)
            for each in checked_list("filters", filters, "[AclBindingFilter('topic', 'flights')]")
        ]
        question: Question[AclBindingFilter, list[AclBinding]] = Question(
            any_broker,
            lambda some: DeleteAclsRequest([DeleteAclsFilter(*numbers(each)) for each in some]),
            lambda some, message: {
                each: refusal(result) or [binding(acl) for acl in result.matching_acls if not acl.error_code]
                for each, result in zip(some, message.filter_results, strict=True)
            },
        )
        found, failed = self._driver.ask(question, wanted, timeout)
        raise_first(failed)
        return sorted({acl for acls in found.values() for acl in acls})


def checked(given: Any, kind: type[Any]) -> Any:
    """A rule or filter whose words are known."""
    if not isinstance(given, kind):
        raise ValueError(f"{given!r} is no {kind.__name__}: write {kind.__name__}('topic', 'flights', …)")
    for field, table in TABLES.items():
        word = getattr(given, field)
        if word not in table:
            raise ValueError(unknown(field.replace("_", " "), str(word), list(table)))
    for field in TEXTS:
        text = getattr(given, field)
        if text is not None or kind is AclBinding:
            checked_text(f"the {field} of {given!r}", text, TEXTS[field])
    return given


def numbers(given: AclBinding | AclBindingFilter) -> Numbers:
    """As it travels, in the order of the protocol's fields."""
    return (
        RESOURCE_TYPES[given.resource_type],
        given.name,
        PATTERN_TYPES[given.pattern_type],
        given.principal,
        given.host,
        OPERATIONS[given.operation],
        PERMISSIONS[given.permission],
    )


def refusal(result: Any) -> KafkaError | None:
    """What went wrong."""
    return error_for(result.error_code, result.error_message or "") if result.error_code else None


def described(message: Any) -> list[AclBinding]:
    """The rules in an answer, which has them by resource."""
    return [
        AclBinding(
            word(RESOURCE_TYPES, each.resource_type),
            each.resource_name,
            acl.principal,
            word(OPERATIONS, acl.operation),
            word(PERMISSIONS, acl.permission_type),
            word(PATTERN_TYPES, each.pattern_type),
            acl.host,
        )
        for each in message.resources
        for acl in each.acls
    ]


def binding(acl: Any) -> AclBinding:
    """A rule that was deleted."""
    return AclBinding(
        word(RESOURCE_TYPES, acl.resource_type),
        acl.resource_name,
        acl.principal,
        word(OPERATIONS, acl.operation),
        word(PERMISSIONS, acl.permission_type),
        word(PATTERN_TYPES, acl.pattern_type),
        acl.host,
    )


def word(table: Mapping[str, int], number: int) -> str:
    """The word for a number; the number where a broker knows more than we do."""
    return next((name for name, known in table.items() if known == number), str(number))
