"""ACLs and quotas through our own admin client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla import Admin, Broker
from ottla.client.admin import AclBinding, AclBindingFilter, ClientQuotaEntity
from ottla.errors import KafkaError

ALICE = AclBinding("topic", "flights", "User:alice", "read")
ETL = AclBinding("topic", "fl", "User:etl", "write", pattern_type="prefixed")
BOB = AclBinding("group", "*", "User:bob", "all", "deny", host="10.0.0.7")


@pytest.fixture
def admin() -> Iterator[Admin]:
    settings: dict[str, Any] = {"authorizer_class_name": "standard", "super_users": "User:ANONYMOUS"}
    with Broker(**settings) as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


def test_acls_are_created_described_and_deleted(admin: Admin) -> None:
    admin.create_acls([ALICE, ETL, BOB, ALICE])
    assert admin.describe_acls(AclBindingFilter()) == sorted([ALICE, ETL, BOB])
    assert admin.describe_acls(AclBindingFilter("topic", "flights", pattern_type="match")) == sorted([ALICE, ETL])
    assert admin.describe_acls(AclBindingFilter("topic", "flights")) == [ALICE]
    assert admin.delete_acls([AclBindingFilter(permission="deny"), AclBindingFilter(principal="User:etl")]) == [
        BOB,
        ETL,
    ]
    assert admin.describe_acls(AclBindingFilter()) == [ALICE]


def test_acl_calls_to_a_broker_without_an_authorizer_raise() -> None:
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        with pytest.raises(KafkaError, match="no authorizer"):
            admin.create_acls([ALICE])
        with pytest.raises(KafkaError, match="no authorizer"):
            admin.describe_acls(AclBindingFilter())


def test_invalid_arguments_are_one_clear_error(admin: Admin) -> None:
    with pytest.raises(KafkaError, match="invalid principal 'alice' of a rule: expected User:NAME"):
        admin.create_acls([ALICE._replace(principal="alice")])
    with pytest.raises(ValueError, match="did you mean 'topic'"):
        admin.create_acls([ALICE._replace(resource_type="topics")])
    with pytest.raises(ValueError, match=r"is not an AclBinding: write AclBinding\('topic'"):
        admin.create_acls([("topic", "flights")])  # type: ignore[list-item]


def test_one_error_reports_the_mistakes_of_several_acls(admin: Admin) -> None:
    wrong = [ALICE._replace(principal="alice", operation=operation) for operation in ("read", "write")]
    with pytest.raises(KafkaError) as caught:
        admin.create_acls(wrong)
    named = "allow alice read of topic 'flights', allow alice write of topic 'flights': "
    assert named in str(caught.value)
    assert str(caught.value).count("invalid principal") == 1


def test_a_validated_quota_change_changes_nothing(admin: Admin) -> None:
    entity = ClientQuotaEntity(user="etl", client_id="c")
    admin.alter_client_quotas({entity: {"request_percentage": 10}}, validate_only=True)
    assert admin.describe_client_quotas() == {}
    admin.alter_client_quotas({entity: {"request_percentage": 10}})
    assert admin.describe_client_quotas(entity) == {entity: {"request_percentage": 10.0}}
    assert admin.describe_client_quotas(ClientQuotaEntity(user="etl")) == {}
